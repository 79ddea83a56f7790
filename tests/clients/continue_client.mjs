// Continue's command line in one shot, with the configuration that the window shows.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const folder = `${process.env.HOME}/.continue`;
mkdirSync(folder);
writeFileSync(`${folder}/config.yaml`, JSON.parse(process.env.SNIPPETS).Continue);
const said = execFileSync("cn", ["--config", `${folder}/config.yaml`, "-p", "Say hello"], {
  stdio: ["ignore", "pipe", "pipe"],
  timeout: 300_000,
});
assert(said.toString().trim());
