// Genkit: a reply, a stream and a tool, by its plugin for compatible servers.
import assert from "node:assert";
import { genkit, z } from "genkit";
import { openAICompatible } from "@genkit-ai/compat-oai";

const { BASE_URL: baseURL, API_KEY: apiKey, MODEL } = process.env;
const ai = genkit({ plugins: [openAICompatible({ name: "slipstream", apiKey, baseURL })], model: `slipstream/${MODEL}` });
const config = { temperature: 0, maxOutputTokens: 80 };
assert((await ai.generate({ prompt: "Hello", config })).text);
const { stream, response } = ai.generateStream({ prompt: "Hello", config });
let text = "";
for await (const part of stream) text += part.text;
assert(text && (await response).text === text);
let called = "";
const inputSchema = z.object({ city: z.string() });
const description = "Get the weather in a city.";
const tool = ai.defineTool({ name: "get_weather", description, inputSchema }, async ({ city }) => (called = city));
await ai.generate({ prompt: "What is the weather in Paris?", tools: [tool], config });
assert.equal(called, "Paris");
process.exit(0);
