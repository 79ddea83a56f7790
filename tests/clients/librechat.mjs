// LibreChat's agents, without its server and page: streams and a tool, as its endpoints for others' servers ask.
import assert from "node:assert";
import { randomUUID } from "node:crypto";
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { GraphEvents, Providers, Run } from "@librechat/agents";
import { z } from "zod";

const { BASE, BASE_URL: baseURL, API_KEY: apiKey, MODEL: model } = process.env;
const usual = { model, apiKey, streaming: true, temperature: 0, maxTokens: 80 };
const openai = { ...usual, provider: Providers.OPENAI, configuration: { baseURL } };
const models = [
  openai,
  { ...openai, useResponsesApi: true },
  { ...openai, provider: Providers.DEEPSEEK },
  { ...openai, provider: Providers.OPENROUTER },
  { ...usual, provider: Providers.ANTHROPIC, clientOptions: { baseURL: BASE } },
];
const called = [];
const get_weather = tool(async ({ city }) => (called.push(city), "sunny"), {
  name: "get_weather",
  description: "Get the weather in a city.",
  schema: z.object({ city: z.string() }),
});
for (const llmConfig of models) {
  for (const [text, tools] of [["Hello", []], ["What is the weather in Paris?", [get_weather]]]) {
    let deltas = 0;
    const instructions = "You are a helpful assistant.";
    const run = await Run.create({
      runId: randomUUID(),
      graphConfig: { type: "standard", instructions, llmConfig: { ...llmConfig }, tools },
      returnContent: true,
      customHandlers: { [GraphEvents.ON_MESSAGE_DELTA]: { handle: () => (deltas += 1) } },
    });
    const config = { configurable: { thread_id: randomUUID() }, streamMode: "values", version: "v2", recursionLimit: 8 };
    const parts = await run.processStream({ messages: [new HumanMessage(text)] }, config);
    assert(deltas, `${llmConfig.provider}: ${JSON.stringify(parts)}`);
  }
  assert.equal(called.shift(), "Paris", llmConfig.provider);
  called.length = 0;
}
process.exit(0);
