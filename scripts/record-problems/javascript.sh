# JavaScript and TypeScript: compilers, linters, bundlers, test runners.
project ts
file tsconfig.json <<'X'
{"compilerOptions": {"strict": true, "noEmit": true, "target": "es2020", "module": "esnext", "moduleResolution": "bundler", "types": []}, "include": ["src"]}
X
file src/main.ts <<'X'
import { half } from "./half";
import { nothing } from "./nowhere";

const n: number = "text";
console.log(half(n, 3));
X
file src/half.ts <<'X'
export function half(n: number): number {
  return missing / 2;
}
X
run tsc-bad tsc 'tsc'
run tsc-pretty tsc 'tsc --pretty true'
run tsc-plain tsc 'tsc --pretty false'
run tsc-watch tsc 'cp src/half.ts /tmp/app/half.bak; (sleep 5; printf "export const half = (n: number, m: number) => n / m;\n" >src/half.ts; sleep 3; printf "import { half } from \"./half\";\nconsole.log(half(1, 2));\n" >src/main.ts; sleep 3; printf "let x: string = 3;\n" >src/half.ts; sleep 3) & timeout --foreground 16 tsc --watch'
file src/half.ts <<'X'
export const half = (n: number) => n / 2;
X
file src/main.ts <<'X'
import { half } from "./half";
console.log(half(3), "src/a.ts(3,4): error TS1: text");
X
run tsc-ok tsc 'tsc && tsc --listFiles | tail -2'
project lint
file eslint.config.mjs <<'X'
import js from "@eslint/js";
export default [js.configs.recommended, {rules: {"no-unused-vars": "warn"}}];
X
file src/a.js <<'X'
const unused = 3;
export function f() {
  return missing;
}
if (f() = 3) { }
X
file src/b.js <<'X'
const unused = 3;
export function f() {
  debugger;
  return missing;
}
X
file ok.js <<'X'
export const ok = 1;
X
run eslint-bad eslint 'eslint src'
run eslint-warn eslint 'sed -i "/debugger/d; /missing/d" src/b.js; eslint src/b.js'
run eslint-ok eslint 'eslint ok.js && echo lint passed: 0 errors'
project vite
file package.json <<'X'
{"name": "app", "private": true, "type": "module"}
X
file index.html <<'X'
<!doctype html><div id="root"></div><script type="module" src="/src/main.jsx"></script>
X
file src/main.jsx <<'X'
import { App } from "./App.jsx";
document.body.append(App());
X
file src/App.jsx <<'X'
export function App() {
  return document.createTextNode("hello");
}
X
file vite.config.js <<'X'
export default { server: { port: 5199, strictPort: true } };
X
run vite-build-ok vite 'vite build'
run vite-dev-ok vite '(sleep 3; curl -s localhost:5199/src/main.jsx >/dev/null; sleep 1) & timeout --foreground 6 vite'
file src/App.jsx <<'X'
export function App() {
  return document.createTextNode("hello";
}
X
run vite-build-syntax vite 'vite build'
run vite-dev-syntax vite '(sleep 3; curl -s localhost:5199/src/App.jsx >/dev/null; sleep 1) & timeout --foreground 6 vite'
file src/App.jsx <<'X'
import { half } from "./nowhere.js";
export const App = () => half();
X
run vite-build-import vite 'vite build'
run vite-dev-import vite '(sleep 3; curl -s localhost:5199/src/App.jsx >/dev/null; sleep 1) & timeout --foreground 6 vite'
file src/App.jsx <<'X'
import { half } from "./half.js";
export const App = () => half();
X
file src/half.js <<'X'
export const double = 2;
X
run vite-build-export vite 'vite build'
file src/App.jsx <<'X'
export function App() {
  return document.createTextNode("hello";
}
X
run vite-dev-fixed vite '(sleep 3; curl -s localhost:5199/src/App.jsx >/dev/null; sleep 1; echo "export const App = () => 1;" >src/App.jsx; sleep 1; curl -s localhost:5199/src/App.jsx >/dev/null; sleep 1) & timeout --foreground 8 vite'
project pack
file package.json <<'X'
{"name": "app", "private": true}
X
file src/index.js <<'X'
import { half } from "./half";
import nothing from "./nowhere";
console.log(half(3));
X
file src/half.js <<'X'
export const half = (n) => n / 2;
export const broken = (n => ;
X
run webpack-bad webpack 'webpack --mode development'
run esbuild-bad esbuild 'esbuild src/index.js --bundle --outfile=out.js'
file src/half.js <<'X'
export const half = (n) => n / 2;
const half2 = 1;
if (half2 == -0) console.log(1);
X
run esbuild-warn esbuild 'esbuild src/half.js --bundle --outfile=out.js'
file src/index.js <<'X'
import { half } from "./half";
console.log(half(3));
X
run webpack-ok webpack 'webpack --mode development'
run esbuild-ok esbuild 'esbuild src/index.js --bundle --outfile=out.js'
file webpack.config.js <<'X'
module.exports = { mode: "development", entry: "./src/index.ts", module: { rules: [{ test: /\.ts$/, use: "ts-loader" }] }, resolve: { extensions: [".ts"] } };
X
file tsconfig.json <<'X'
{"compilerOptions": {"strict": true, "types": []}, "include": ["src/*.ts"]}
X
file src/index.ts <<'X'
const n: number = "text";
console.log(n, nothing);
X
run webpack-ts webpack 'webpack'
run webpack-watch webpack '(sleep 14; echo "console.log(1);" >src/index.ts; sleep 8) & timeout --foreground 26 webpack --watch'
project node
file throws.js <<'X'
function half(n) {
  throw new TypeError("bad value " + n);
}
function run() {
  half(3);
}
run();
X
file syntax.js <<'X'
function half(n) {
  return n /;
}
X
file rejects.mjs <<'X'
import { readFile } from "node:fs/promises";
async function load() {
  const n = undefined;
  return n.length;
}
await load();
X
file missing.js <<'X'
const a = 1;
require("./nowhere");
X
file ok.js <<'X'
console.log("ok.js:3:4 - listening, no error");
console.error("warning: nothing");
X
run node-throws node 'node throws.js'
run node-syntax node 'node syntax.js'
run node-rejects node 'node rejects.mjs'
run node-missing node 'node missing.js'
run node-ok node 'node ok.js'
project jester
file package.json <<'X'
{"name": "app", "private": true}
X
file half.js <<'X'
exports.half = (n) => n / 2;
exports.boom = () => { throw new Error("boom"); };
X
file half.test.js <<'X'
const { half, boom } = require("./half");
test("halves", () => {
  expect(half(4)).toBe(2);
});
describe("wrong", () => {
  test("is wrong", () => {
    expect(half(4)).toBe(3);
  });
  test("throws", () => {
    boom();
  });
});
X
file syntax.test.js <<'X'
test("x", () => {
  expect(1.toBe(2);
});
X
file ok.test.js <<'X'
test("fine", () => { console.log("note: half.test.js:3:4 error"); expect(1).toBe(1); });
X
run jest-fails jest 'jest half'
run jest-syntax jest 'jest syntax'
run jest-ok jest 'jest ok'
run jest-verbose jest 'jest --verbose half ok'
project vitester
file package.json <<'X'
{"name": "app", "private": true, "type": "module"}
X
file half.js <<'X'
export const half = (n) => n / 2;
export const boom = () => { throw new Error("boom"); };
X
file half.test.js <<'X'
import { expect, test, describe } from "vitest";
import { half, boom } from "./half.js";
test("halves", () => {
  expect(half(4)).toBe(2);
});
describe("wrong", () => {
  test("is wrong", () => {
    expect(half(4)).toBe(3);
  });
  test("throws", () => {
    boom();
  });
});
X
file ok.test.js <<'X'
import { expect, test } from "vitest";
test("fine", () => { console.log("note: half.test.js:3:4 error"); expect(1).toBe(1); });
X
file import.test.js <<'X'
import { test } from "vitest";
import "./nowhere.js";
test("x", () => {});
X
run vitest-fails vitest 'vitest run half'
run vitest-import vitest 'vitest run import'
run vitest-ok vitest 'vitest run ok'
project play
file package.json <<'X'
{"name": "app", "private": true}
X
file a.spec.js <<'X'
const { test, expect } = require("@playwright/test");
test("adds", () => { expect(1 + 1).toBe(2); });
test.describe("wrong", () => {
  test("is wrong", () => {
    expect(1 + 1).toBe(3);
  });
  test("throws", () => {
    throw new Error("boom");
  });
});
X
file ok.spec.js <<'X'
const { test, expect } = require("@playwright/test");
test("adds", () => { expect(1 + 1).toBe(2); });
X
run playwright-fails playwright 'playwright test a.spec.js --reporter=list'
run playwright-ok playwright 'playwright test ok.spec.js --reporter=list'
project nexter
file package.json <<'X'
{"name": "app", "private": true}
X
file app/layout.tsx <<'X'
export default function Layout({ children }: { children: React.ReactNode }) { return <html><body>{children}</body></html>; }
X
file app/page.tsx <<'X'
export default function Page() {
  const n: number = "text";
  return <p>{n}</p>;
}
X
file tsconfig.json <<'X'
{"compilerOptions": {"strict": true, "noEmit": true, "jsx": "preserve", "esModuleInterop": true, "moduleResolution": "bundler", "module": "esnext", "skipLibCheck": true, "allowJs": true, "resolveJsonModule": true, "isolatedModules": true, "incremental": true, "lib": ["dom", "esnext"], "plugins": [{"name": "next"}]}, "include": ["next-env.d.ts", "**/*.ts", "**/*.tsx", ".next/types/**/*.ts"], "exclude": ["node_modules"]}
X
run next-type next 'rm -rf .next; next build'
file app/page.tsx <<'X'
import { x } from "./nowhere";
export default function Page() { return <p>{x}</p>; }
X
run next-import next 'rm -rf .next; next build'
file app/page.tsx <<'X'
export default function Page() {
  return <p>hello</div>;
}
X
run next-syntax next 'rm -rf .next; next build'
run next-dev-syntax next '(sleep 8; curl -s -m 20 localhost:3199 >/dev/null; sleep 2) & timeout --foreground 24 next dev -p 3199'
file app/page.tsx <<'X'
export default function Page() { return <p>hello</p>; }
X
run next-ok next 'rm -rf .next; next build'
