// An agent with the AI SDK's receiver of webhooks. usage: node receiver.mjs URL TOKEN-FILE PORT KIND ARGUMENTS
// It prints a line of JSON for its subscription, and one for each event, gap and end. It ends with its standard input.
import { createMCPClient, experimental_createMCPEventWebhook as hook } from '@ai-sdk/mcp';
import { readFileSync } from 'node:fs';
import http from 'node:http';

const [url, tokenFile, port, name, args] = process.argv.slice(2);
const rows = new Map();
const store = {
  get: async key => rows.get(key),
  getById: async id => [...rows.values()].find(row => row.id === id),
  set: async row => { rows.set(row.key, { ...row }); },
  update: async (key, patch) => { rows.set(key, { ...rows.get(key), ...patch }); },
  delete: async key => { rows.delete(key); },
};
const say = what => console.log(JSON.stringify(what));
const handle = hook({ store, onEvent: async ({ event }) => say({ event }), onGap: async gap => say({ gap }), onTerminated: async end => say({ terminated: end }) });
const at = `http://127.0.0.1:${port}`;
const server = http.createServer(async (q, a) => {
  const parts = [];
  for await (const part of q) parts.push(part);
  const r = await handle(new Request(at + q.url, { method: q.method, headers: q.headers, body: Buffer.concat(parts) }));
  a.writeHead(r.status, Object.fromEntries(r.headers));
  a.end(Buffer.from(await r.arrayBuffer()));
}).listen(Number(port), '127.0.0.1');
const headers = { Authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
const client = await createMCPClient({ transport: { type: 'http', url, headers }, experimental_events: { store } });
const events = client.experimental_events;
const sub = await events.subscribe({ name, arguments: JSON.parse(args), delivery: { mode: 'webhook', url: `${at}/`, allowInsecureLocalhost: true }, ttlMs: 600000 });
say({ subscribed: sub.id, refreshed: (await events.refresh({ id: sub.id })).id });
for await (const _ of process.stdin);
await events.unsubscribe({ id: sub.id });
say({ unsubscribed: sub.id });
await client.close();
server.close();
