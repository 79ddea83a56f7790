// opencode in one shot, with the configuration that the window shows: its provider for compatible servers.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const folder = `${process.env.HOME}/.config/opencode`;
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/opencode.json`, JSON.parse(process.env.SNIPPETS).opencode);
const said = execFileSync("opencode", ["run", "Say hello"], { stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 });
assert(said.toString().trim());
