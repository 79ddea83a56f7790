// codex in one shot: its newest protocol, responses.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const home = `${process.env.HOME}/codex`;
mkdirSync(home);
writeFileSync(
  `${home}/config.toml`,
  `model = "${process.env.MODEL}"\nmodel_provider = "slipstream"\n[model_providers.slipstream]\nname = "Slipstream"\n` +
    `base_url = "${process.env.BASE_URL}"\nenv_key = "API_KEY"\nwire_api = "responses"\n`,
);
const said = execFileSync("codex", ["exec", "--skip-git-repo-check", "Say hello"], {
  env: { ...process.env, CODEX_HOME: home },
  stdio: ["ignore", "pipe", "pipe"],
  timeout: 300_000,
});
assert(said.toString().trim());
