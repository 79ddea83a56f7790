// opencode in one shot, through its provider for compatible servers.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const { BASE_URL: baseURL, API_KEY: apiKey, MODEL } = process.env;
const models = { [MODEL]: { name: "Ember", limit: { context: 16384, output: 256 } } };
const slipstream = { npm: "@ai-sdk/openai-compatible", name: "Slipstream", options: { baseURL, apiKey }, models };
const model = `slipstream/${MODEL}`;
const folder = `${process.env.HOME}/.config/opencode`;
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/opencode.json`, JSON.stringify({ provider: { slipstream }, model, small_model: model }));
const said = execFileSync("opencode", ["run", "Say hello"], { stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 });
assert(said.toString().trim());
