// codex in one shot, with the configuration that the window shows: its newest protocol, responses.
import assert from "node:assert";
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const home = `${process.env.HOME}/codex`;
mkdirSync(home);
writeFileSync(`${home}/config.toml`, JSON.parse(process.env.SNIPPETS).codex);
for (const model of [[], ["--model", "gpt-5.5"]]) {  // of the second it knows that it may search for tools
  const { status, stdout, stderr } = spawnSync("codex", ["exec", "--skip-git-repo-check", ...model, "Say hello"], {
    env: { ...process.env, CODEX_HOME: home },
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    timeout: 300_000,
  });
  // A text that does not end by itself is cut by the server, which codex shows and calls an error.
  assert(status === 0 ? stdout.trim() : stderr.includes("reason: max_output_tokens"), stderr);
}
