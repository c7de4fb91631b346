// usage: node test-ways.js DIRECTORY   serves what make release has made to the tests of install scripts and of npm: the files at /FILE, the
// packages as a registry of npm at /npm/, below /wrong/ with one byte of each archive changed, and below /half/ each archive cut. It
// prints its address.
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const { execFileSync } = require('node:child_process');

const directory = process.argv[2];
const packages = {};
for (const file of fs.readdirSync(directory).filter((name) => name.endsWith('.tgz'))) {
  const archive = path.join(directory, file);
  const about = JSON.parse(execFileSync('tar', ['-xzOf', archive, 'package/package.json']));
  const integrity = 'sha512-' + createHash('sha512').update(fs.readFileSync(archive)).digest('base64');
  packages[about.name] = { file, about, integrity };
}

const server = http.createServer((request, response) => {
  const parts = decodeURIComponent(request.url).split('/').slice(1);
  const address = `http://127.0.0.1:${server.address().port}`;
  if (parts[0] === 'npm') {
    const found = packages[parts.slice(1).join('/')];
    if (!found) return response.writeHead(404).end('{}');
    const { file, about, integrity } = found;
    const dist = { tarball: `${address}/${file}`, integrity };
    const answer = { name: about.name, 'dist-tags': { latest: about.version }, versions: { [about.version]: { ...about, dist } } };
    return response.end(JSON.stringify(answer));
  }
  const file = path.join(directory, parts[parts.length - 1]);
  if (!fs.existsSync(file) || parts[parts.length - 1] === '') return response.writeHead(404).end();
  const data = fs.readFileSync(file);
  if (file.endsWith('.gz') && parts[0] === 'wrong') data[data.length >> 1] ^= 1;
  if (file.endsWith('.gz') && parts[0] === 'half') { // the connection ends in the middle
    response.writeHead(200, { 'content-length': data.length });
    return response.write(data.subarray(0, data.length >> 1), () => response.destroy());
  }
  response.end(data);
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
