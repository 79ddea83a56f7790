// Qwen Code in one shot, set up by its variables.
import assert from "node:assert";
import { execFileSync } from "node:child_process";

const { BASE_URL, API_KEY, MODEL } = process.env;
const env = { ...process.env, OPENAI_BASE_URL: BASE_URL, OPENAI_API_KEY: API_KEY, OPENAI_MODEL: MODEL };
const options = ["--auth-type", "openai", "--output-format", "json", "--prompt", "Say hello"];
const said = execFileSync("qwen", options, { env, stdio: ["ignore", "pipe", "inherit"], timeout: 500_000 });
const last = JSON.parse(said.toString()).at(-1);
assert.equal(last.type, "result");
assert(!last.is_error && last.usage.output_tokens > 0, said.toString());
