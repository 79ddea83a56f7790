// Mastra: an agent's reply, stream, form and tool, by its router's model with an address.
import assert from "node:assert";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const { BASE_URL: url, API_KEY: apiKey, MODEL } = process.env;
let called = "";
const weather = createTool({
  id: "get_weather",
  description: "Get the weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async (sent) => (called = (sent.context ?? sent).city),
});
const model = { id: `custom/${MODEL}`, url, apiKey };
const agent = (tools) => new Agent({ id: "one", name: "one", instructions: "You tell the weather.", model, tools });
const modelSettings = { temperature: 0, maxOutputTokens: 80 };
assert((await agent({}).generate("Hello", { modelSettings })).text);
let text = "";
for await (const piece of (await agent({}).stream("Hello", { modelSettings })).textStream) text += piece;
assert(text);
const schema = z.object({ size: z.enum(["small", "large"]) });
assert(schema.parse((await agent({}).generate("Choose one.", { structuredOutput: { schema }, modelSettings })).object));
await agent({ get_weather: weather }).generate("What is the weather in Paris?", { maxSteps: 2, modelSettings });
assert.equal(called, "Paris");
process.exit(0);
