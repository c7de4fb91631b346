// Starts a program of the package for this system, which npm has installed as an optional dependency.
const { spawn } = require('node:child_process');
const path = require('node:path');

const names = [{{range $i, $t := .Targets}}{{if $i}}, {{end}}'{{$t.Name}}'{{end}}];

module.exports = (program) => {
  const own = names.find((name) => name.endsWith(`-${process.platform}-${process.arch}`));
  if (!own) {
    console.error(`tether: there is no build for ${process.platform} on ${process.arch}`);
    process.exit(1);
  }
  let directory;
  try {
    directory = path.dirname(require.resolve(`${own}/package.json`));
  } catch {
    console.error(`tether: the package ${own} is missing; install {{.NPM}} again, without --omit=optional`);
    process.exit(1);
  }
  const file = path.join(directory, 'bin', program + (process.platform === 'win32' ? '.exe' : ''));
  const child = spawn(file, process.argv.slice(2), { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGQUIT']) process.on(signal, () => {}); // the terminal sends them to the program, too
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(`tether: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
};
