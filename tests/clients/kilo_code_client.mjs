// Kilo Code in one shot.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const { BASE_URL: baseURL, API_KEY: apiKey, MODEL, HOME, NODE_PATH } = process.env;
const models = { [MODEL]: { name: MODEL, limit: { context: 32768, output: 256 } } };
const slipstream = { npm: "@ai-sdk/openai-compatible", name: "Slipstream", options: { baseURL, apiKey }, models };
mkdirSync(`${HOME}/.config/kilo`, { recursive: true });
writeFileSync(`${HOME}/.config/kilo/kilo.json`, JSON.stringify({ provider: { slipstream } }));
const kilo = `${NODE_PATH}/@kilocode/cli-linux-x64/bin/kilo`;
const options = ["run", "--format", "json", "--model", `slipstream/${MODEL}`, "Say hello"];
const said = execFileSync(kilo, options, { stdio: ["ignore", "pipe", "inherit"], timeout: 300_000 }).toString();
const events = said.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
assert(events.some((event) => event.type === "text" || event.type === "tool_use"), said);
assert(!events.some((event) => event.type === "error"), said);
