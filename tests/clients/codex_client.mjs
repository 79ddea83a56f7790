// codex in one shot, with the configuration that the window shows: its newest protocol, responses.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const home = `${process.env.HOME}/codex`;
mkdirSync(home);
writeFileSync(`${home}/config.toml`, JSON.parse(process.env.SNIPPETS).codex);
const said = execFileSync("codex", ["exec", "--skip-git-repo-check", "Say hello"], {
  env: { ...process.env, CODEX_HOME: home },
  stdio: ["ignore", "pipe", "pipe"],
  timeout: 300_000,
});
assert(said.toString().trim());
