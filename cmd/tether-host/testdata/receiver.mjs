// An agent with the AI SDK's receiver of webhooks. usage: node receiver.mjs URL TOKEN-FILE PORT KIND ARGUMENTS
// It prints a line of JSON for its subscription, and one for each event, gap and end. What comes on its standard input makes it renew the
// subscription, and the end of that makes it unsubscribe. docs/AGENTS.md describes it.
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
let challenges = 0; // that were answered
const say = what => console.log(JSON.stringify(what));
const handle = hook({ store, onEvent: async ({ event }) => say({ event }), onGap: async gap => say({ gap }), onTerminated: async end => say({ terminated: end }) });
const at = `http://127.0.0.1:${port}`;
const server = http.createServer(async (q, a) => {
  const parts = [];
  for await (const part of q) parts.push(part);
  const body = Buffer.concat(parts);
  const r = await handle(new Request(at + q.url, { method: q.method, headers: q.headers, body }));
  if (r.ok && JSON.parse(body).type === 'verification') challenges++;
  a.writeHead(r.status, Object.fromEntries(r.headers));
  a.end(Buffer.from(await r.arrayBuffer()));
}).listen(Number(port), '127.0.0.1');
const headers = { Authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}` };
const client = await createMCPClient({ transport: { type: 'http', url, headers }, experimental_events: { store } });
const events = client.experimental_events;
const listed = (await events.list()).events.map(one => one.name);
const sub = await events.subscribe({ name, arguments: JSON.parse(args), delivery: { mode: 'webhook', url: `${at}/`, allowInsecureLocalhost: true }, ttlMs: 600000 });
say({ subscribed: sub.id, listed, challenges, refreshed: (await events.refresh({ id: sub.id })).id });
for await (const _ of process.stdin) say({ refreshed: (await events.refresh({ id: sub.id })).id });
await events.unsubscribe({ id: sub.id });
say({ unsubscribed: sub.id });
await client.close();
server.close();
