// A browser that a test drives: one JSON object per line on standard input, one answer per line on standard output.
// Arguments: the directory of playwright-core, and the browser's program.
import {createRequire} from "node:module";
import {createInterface} from "node:readline";

const [modules, program] = process.argv.slice(2);
const {chromium} = createRequire(modules + "/")("playwright-core");
// On a busy machine everything may take minutes. What never happens still ends the test.
const patience = 240000; // ms
const browser = await chromium.launch({executablePath: program, timeout: patience, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
const seen = {requests: [], errors: [], dialogs: [], popups: [], sockets: [], sent: []};
let context, page, tools;

// session speaks the DevTools protocol with the page.
async function session() {
  if (tools) return tools;
  tools = await context.newCDPSession(page);
  tools.on("ServiceWorker.workerRegistrationUpdated", e => { for (const r of e.registrations) tools.registration = r.isDeleted ? null : r.registrationId; });
  await tools.send("ServiceWorker.enable");
  return tools;
}

// watch notes what a window does besides showing its page.
function watch(p) {
  p.on("pageerror", e => seen.errors.push(String(e.stack ?? e)));
  p.on("console", m => { if (m.type() === "error") seen.errors.push(m.text()); });
  p.on("websocket", socket => seen.sockets.push(socket.url()));
  p.on("dialog", d => { seen.dialogs.push(d.message()); d.dismiss(); });
}

const ops = {
  async open({width = 1280, height = 800, dark = false, script = true}) {
    await context?.close();
    context = await browser.newContext({viewport: {width, height}, colorScheme: dark ? "dark" : "light", javaScriptEnabled: script,
      permissions: ["clipboard-read", "clipboard-write", "notifications"]});
    context.setDefaultTimeout(patience);
    page = await context.newPage();
    tools = null;
    context.on("request", r => seen.requests.push(r.url()));
    watch(page);
    context.on("page", p => { seen.popups.push(p.url()); watch(p); });
    page.on("websocket", socket => socket.on("framesent", f => { if (seen.sent.length < 10000) seen.sent.push(String(f.payload)); }));
  },
  // Forgets all of a test.
  async leave() {
    await context?.close();
    context = page = tools = undefined;
    for (const all of Object.values(seen)) all.length = 0;
  },
  // Ends the present window, and forgets what all did. It goes on with the first one.
  async close() {
    await page.close();
    page = context.pages()[0];
    tools = null;
    for (const all of Object.values(seen)) all.length = 0;
  },
  async size({width, height}) { await page.setViewportSize({width, height}); },
  async goto({url}) { return (await page.goto(url)).status(); },
  // The page's policy forbids the evaluation of text within it, so this polls from outside.
  async wait({js}) {
    for (const end = Date.now() + patience; ; await new Promise(r => setTimeout(r, 50))) {
      const is = await page.evaluate(js).catch(e => { if (!/context was destroyed|navigation/.test(String(e))) throw e; });
      if (is) return;
      if (Date.now() > end) throw new Error("it did not come true");
    }
  },
  // Like eval, but false while the page is loaded anew.
  async is({js}) { return await page.evaluate(js).catch(e => { if (!/context was destroyed|navigation/.test(String(e))) throw e; return false; }); },
  async eval({js}) { return await page.evaluate(js); },
  async click({selector}) { await page.click(selector); },
  async key({key}) { await page.keyboard.press(key); },
  async type({text}) { await page.keyboard.type(text); },
  // Goes on with the window that was opened as the n-th.
  async window({n}) {
    for (const end = Date.now() + patience; !context.pages()[n]; await new Promise(r => setTimeout(r, 50))) if (Date.now() > end) throw new Error("no window");
    page = context.pages()[n];
    tools = null;
  },
  async reload() { await page.reload(); },
  async shot({path}) { await page.screenshot({path}); },
  async cookies() { return await context.cookies(); },
  async seen() { return seen; },
  // Runs before the page's scripts, at each load from now on.
  async before({js}) { await context.addInitScript(js); },
  // What the browser would say about installing the page.
  async manifest() {
    const cdp = await session(), {errors, data} = await cdp.send("Page.getAppManifest");
    const {installabilityErrors} = await cdp.send("Page.getInstallabilityErrors");
    return {errors: errors.map(e => e.message), installability: installabilityErrors.map(e => e.errorId), data};
  },
  // Delivers a message to the page's service worker, as the browser's push service does.
  async push({origin, data}) {
    const cdp = await session();
    for (const end = Date.now() + patience; !cdp.registration; await new Promise(r => setTimeout(r, 50))) if (Date.now() > end) throw new Error("no service worker");
    await cdp.send("ServiceWorker.deliverPushMessage", {origin, registrationId: cdp.registration, data});
  },
  // Evaluates in the page's service worker.
  async worker({js}) { return await (context.serviceWorkers()[0] ?? await context.waitForEvent("serviceworker")).evaluate(js); },
};

for await (const line of createInterface({input: process.stdin})) {
  const m = JSON.parse(line);
  let answer;
  try { answer = {value: await ops[m.op](m) ?? null}; } catch (e) { answer = {error: String(e)}; }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
await browser.close();
