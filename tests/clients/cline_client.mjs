// Cline in one shot, by its provider for compatible servers.
import assert from "node:assert";
import { execFileSync } from "node:child_process";

const { BASE_URL, API_KEY, MODEL } = process.env;
const options = { stdio: ["ignore", "pipe", "ignore"], timeout: 300_000, encoding: "utf8" };
execFileSync("cline", ["auth", "-p", "openai", "-k", API_KEY, "-m", MODEL, "-b", BASE_URL], options);
const said = execFileSync("cline", ["--json", "Say hello"], options);
const events = said.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
const { finishReason, usage } = events.find((event) => event.type === "run_result");
assert(finishReason === "completed" && usage.outputTokens > 0, said);
