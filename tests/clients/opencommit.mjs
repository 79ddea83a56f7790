// opencommit: a commit with a message, by OpenAI's protocol and Ollama's.
import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";

const { BASE, BASE_URL, API_KEY, MODEL } = process.env;
const ann = { GIT_AUTHOR_NAME: "Ann", GIT_AUTHOR_EMAIL: "ann@example.com" };
Object.assign(ann, { GIT_COMMITTER_NAME: "Ann", GIT_COMMITTER_EMAIL: "ann@example.com" });
const usual = { ...process.env, ...ann, OCO_MODEL: MODEL, OCO_GITPUSH: "false", OCO_TOKENS_MAX_OUTPUT: "60" };
const bearer = JSON.stringify({ Authorization: `Bearer ${API_KEY}` }); // as from Ollama, it sends no key of its own
const ways = [
  { OCO_AI_PROVIDER: "openai", OCO_API_URL: BASE_URL, OCO_API_KEY: API_KEY },
  { OCO_AI_PROVIDER: "ollama", OCO_API_URL: BASE, OCO_API_CUSTOM_HEADERS: bearer },
];
const git = (...words) => execFileSync("git", words, { encoding: "utf8" });
git("init", "--quiet");
for (const way of ways) {
  const file = `${way.OCO_AI_PROVIDER}.txt`;
  writeFileSync(file, "The fox lives in the old mill.\n");
  git("add", ".");
  execFileSync("oco", ["--yes"], { env: { ...usual, ...way }, stdio: ["ignore", "inherit", "inherit"], timeout: 120_000 });
  assert(git("log", "--format=%s", "--", file).trim());
}
