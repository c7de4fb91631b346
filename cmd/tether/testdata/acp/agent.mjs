// An agent on the official TypeScript SDK that does what its prompt says: a list of steps in JSON. It answers with their results.
// ACP_SDK is the path of the SDK's module.
import { Readable, Writable } from "node:stream";

const { agent, methods, ndJsonStream, RequestError } = await import(process.env.ACP_SDK);
const terminals = new Map(); // by the name a step gave it
const { client } = methods;

const steps = {
  capabilities: () => capabilities,
  async create(cx, session, { as = "t", params }) {
    const terminal = await cx.createTerminal({ sessionId: session, ...params });
    terminals.set(as, terminal);
    return { terminalId: terminal.id };
  },
  output: (cx, session, { as = "t" }) => terminals.get(as).currentOutput(),
  wait: (cx, session, { as = "t" }) => terminals.get(as).waitForExit(),
  kill: (cx, session, { as = "t" }) => terminals.get(as).kill(),
  release: (cx, session, { as = "t" }) => terminals.get(as).release(),
  request: (cx, session, { method, params }) => cx.request(method, params),
  sleep: (cx, session, { ms }) => new Promise((done) => setTimeout(done, ms)),
  end: (cx, session, { status }) => process.exit(status),
  // A tool call, new or updated, with terminals in its content.
  async show(cx, session, { update, terminals: shown = [] }) {
    const content = shown.map((as) => ({ type: "terminal", terminalId: terminals.get(as).id }));
    await cx.notify(client.session.update, { sessionId: session, update: { ...update, ...(shown.length ? { content } : {}) } });
  },
  // The output from time to time until it holds a text.
  async until(cx, session, { as = "t", text }) {
    for (;;) {
      const { output } = await terminals.get(as).currentOutput();
      if (output.includes(text)) return { output };
      await new Promise((done) => setTimeout(done, 20));
    }
  },
};

let capabilities;
let count = 0;

agent({ name: "test agent" })
  .onRequest(methods.agent.initialize, ({ params }) => {
    capabilities = params.clientCapabilities;
    return { protocolVersion: Number(process.env.ACP_VERSION ?? 1), agentCapabilities: { loadSession: false } };
  })
  .onRequest(methods.agent.session.new, () => ({ sessionId: `session-${++count}` }))
  .onRequest(methods.agent.session.prompt, async ({ params, client: cx }) => {
    const results = [];
    for (const step of JSON.parse(params.prompt[0].text)) {
      try {
        results.push((await steps[step.do](cx, params.sessionId, step)) ?? null);
      } catch (e) {
        if (!(e instanceof RequestError) && e.code === undefined) throw e;
        results.push({ error: { code: e.code, message: e.message, data: e.data } });
      }
    }
    await cx.notify(client.session.update, {
      sessionId: params.sessionId,
      update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: JSON.stringify(results) } },
    });
    return { stopReason: "end_turn" };
  })
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
