// The AI SDK's providers of other services, pointed here: a reply, a form and a tool with each one's own fields.
import assert from "node:assert";
import { embedMany, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createCerebras } from "@ai-sdk/cerebras";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createFireworks } from "@ai-sdk/fireworks";
import { createGroq } from "@ai-sdk/groq";
import { createMistral } from "@ai-sdk/mistral";
import { createPerplexity } from "@ai-sdk/perplexity";
import { createTogetherAI } from "@ai-sdk/togetherai";
import { createXai } from "@ai-sdk/xai";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { z } from "zod";

const { BASE_URL: baseURL, API_KEY: apiKey, MODEL } = process.env;
const where = { baseURL, apiKey };
const mistral = createMistral(where);
const models = [
  createAnthropic(where)(MODEL),
  createCerebras(where)(MODEL),
  createDeepSeek(where)(MODEL),
  createFireworks(where)(MODEL),
  createGroq(where)(MODEL),
  mistral(MODEL),
  createTogetherAI(where)(MODEL),
  createXai(where)(MODEL),
  createOpenRouter(where)(MODEL),
];
const noForm = ["deepseek.chat", "togetherai.chat"]; // they ask for JSON and do not send its schema
const providerOptions = {
  groq: { reasoningFormat: "parsed", serviceTier: "auto", user: "me" },
  mistral: { safePrompt: false },
  openrouter: { models: [MODEL], usage: { include: true } },
};
const settings = { providerOptions, maxRetries: 0, temperature: 0, topP: 0.9, seed: 7 };
const told = [
  { role: "user", content: "Tell me a story." },
  { role: "assistant", content: [{ type: "reasoning", text: "A fox." }, { type: "text", text: "A fox ran." }] },
  { role: "user", content: [{ type: "text", text: "And then?" }] },
];
const get_weather = tool({
  description: "Get the weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ weather: `sunny in ${city}` }),
});
const output = Output.object({ schema: z.object({ colour: z.enum(["red", "blue"]) }) });
for (const model of [...models, createPerplexity(where)(MODEL)]) {
  assert((await generateText({ ...settings, model, messages: told, maxOutputTokens: 20 })).text, model.provider);
}
for (const model of models) {
  const tools = { get_weather };
  const asked = { prompt: "What is the weather in Paris?", tools, maxOutputTokens: 80, stopWhen: stepCountIs(2) };
  const steps = await streamText({ ...settings, ...asked, model }).steps;
  assert.deepEqual(steps[0].toolCalls[0].input, { city: "Paris" }, model.provider);
  assert.equal(steps.length, 2, model.provider);
  if (noForm.includes(model.provider)) continue;
  const form = await generateText({ ...settings, model, output, prompt: "Name a colour.", maxOutputTokens: 60 });
  assert(["red", "blue"].includes(form.output.colour), model.provider);
}
const { embeddings } = await embedMany({ model: mistral.embedding(MODEL), values: ["a fox", "a boat"], maxRetries: 0 });
assert(embeddings.length === 2 && embeddings[0].length > 1);
