// goose in one shot, by OpenAI's protocol and Anthropic's, with its own tools.
import assert from "node:assert";
import { execFileSync } from "node:child_process";

const { BASE, API_KEY, MODEL, NODE_PATH } = process.env;
const servers = {
    openai: { OPENAI_HOST: BASE, OPENAI_API_KEY: API_KEY },
    anthropic: { ANTHROPIC_HOST: BASE, ANTHROPIC_API_KEY: API_KEY },
};
const usual = { GOOSE_MODEL: MODEL, GOOSE_DISABLE_KEYRING: "1", GOOSE_TELEMETRY_ENABLED: "false", GOOSE_MODE: "chat" };
const goose = `${NODE_PATH}/@aaif/goose-binary-linux-x64/bin/goose`;
const options = ["run", "--no-session", "--with-builtin", "developer", "--max-turns", "2", "--output-format", "json"];
for (const [GOOSE_PROVIDER, server] of Object.entries(servers)) {
    const env = { ...process.env, ...usual, ...server, GOOSE_PROVIDER };
    const stdio = ["ignore", "pipe", "inherit"];
    const said = execFileSync(goose, [...options, "--text", "Say hello"], { env, stdio, timeout: 250_000 }).toString();
    const { messages } = JSON.parse(said.slice(said.indexOf("{")));
    const replies = messages.filter((message) => message.role === "assistant").flatMap((message) => message.content);
    assert(replies.some((part) => part.type === "text" || part.type === "toolRequest"), said);
    assert(!said.includes("Ran into this error"), said);
}
