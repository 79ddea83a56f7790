// Letta Code: one shot by each of its providers for servers on this machine.
import assert from "node:assert";
import { execFileSync } from "node:child_process";

const { BASE_URL, API_KEY, MODEL } = process.env;
const env = { ...process.env, LETTA_LOCAL_BACKEND_EXPERIMENTAL: "1", DISABLE_AUTOUPDATER: "1" };
const letta = (...options) => execFileSync("letta", options, { env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const plain = ["--backend", "local", "--new-agent", "--no-memfs", "--no-skills", "--output-format", "json"];
for (const provider of ["lmstudio", "llama-cpp"]) {
  letta("connect", provider, "--base-url", BASE_URL, "--api-key", API_KEY);
  const told = JSON.parse(letta("-p", "Say hello", ...plain, "--model", `${provider}/${MODEL}`));
  assert(!told.is_error && told.result, JSON.stringify(told));
}
