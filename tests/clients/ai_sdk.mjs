// Vercel's AI SDK: its default (responses), chat, and the provider for compatible servers.
import assert from "node:assert";
import { generateText, streamText, stepCountIs, tool } from "ai";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { z } from "zod";

const { BASE_URL: baseURL, API_KEY: apiKey, MODEL } = process.env;
const openai = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({ name: "slipstream", baseURL, apiKey });
const get_weather = tool({
  description: "Get the weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ weather: `sunny in ${city}` }),
});
for (const model of [openai(MODEL), openai.chat(MODEL), compatible(MODEL)]) {
  assert((await generateText({ model, prompt: "Tell me a story.", maxOutputTokens: 20 })).text);
  const stream = streamText({
    model,
    prompt: "What is the weather in Paris?",
    tools: { get_weather },
    temperature: 0,
    maxOutputTokens: 80,
    stopWhen: stepCountIs(2),
  });
  const steps = await stream.steps;
  assert.deepEqual(steps[0].toolCalls[0].input, { city: "Paris" });
  assert(steps.length === 2);
}
