/**
 * Where the server's time goes, as a picture: the self time of a CPU profile by whose code it was.
 *
 *     npm run bench -- --only searches --cpu-profile profiles
 *     npm run bench:picture -- profiles/CPU.….cpuprofile docs/performance.svg
 */
import { readFileSync, writeFileSync } from 'node:fs';

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The first that fits takes it. Idle time is left out. */
const groups: readonly (readonly [name: string, fits: RegExp, color: string])[] = [
  ['waiting for sockets', /^\(idle\)/, ''],
  [
    'writing to sockets (database and clients)',
    /^(writev|writeUtf8String|writeBuffer|writeLatin1String) $/,
    '#4878a8',
  ],
  ['garbage collector', /^\(garbage collector\)/, '#a85448'],
  [
    'PostgreSQL driver',
    /node_modules\/pg|pg-protocol|dist\/(parser|serializer|buffer-reader|index)\.js/,
    '#6a9f58',
  ],
  ['HTTP framework', /node_modules\/(fastify|find-my-way|avvio|light-my-request|@fastify)/, '#c8963e'],
  ['log and metrics', /node_modules\/(pino|prom-client|sonic-boom|thread-stream)/, '#8064a2'],
  ['ETag (hash)', /node:internal\/crypto/, '#5f9ea0'],
  ['Lanescan: search and store', /dist\/(store|domain)\//, '#d06a8c'],
  ['Lanescan: HTTP', /dist\/(api|cli)\//, '#b0587a'],
  [
    'Node: HTTP and streams',
    /node:(_http|internal\/streams|net|internal\/stream_base|internal\/http|events)/,
    '#9a9a60',
  ],
  ['Node: everything else', /./, '#909090'],
];

const [input, output] = process.argv.slice(2);
if (input === undefined || output === undefined) {
  console.error('usage: picture.ts FILE.cpuprofile OUT.svg');
  process.exit(2);
}
const profile = JSON.parse(readFileSync(input, 'utf8')) as Profile;
const groupOfNode = new Map(
  profile.nodes.map(({ id, callFrame: { functionName, url } }) => {
    const text = `${functionName} ${url}`;
    return [id, groups.findIndex(([, fits]) => fits.test(text))] as const;
  }),
);
const times = groups.map(() => 0);
profile.samples.forEach((id, index) => {
  const group = groupOfNode.get(id) ?? groups.length - 1;
  times[group] = (times[group] ?? 0) + (profile.timeDeltas[index] ?? 0);
});
const bars = groups
  .map(([name, , color], index) => ({ name, color, time: times[index] ?? 0 }))
  .slice(1)
  .sort((a, b) => b.time - a.time);
const total = bars.reduce((sum, { time }) => sum + time, 0);
const most = bars[0]?.time ?? 1;

const ROW = 26;
const LABEL = 300;
const WIDTH = 760;
const rows = bars.map(({ name, color, time }, index) => {
  const y = 12 + index * ROW;
  const width = Math.max(1, Math.round((time / most) * (WIDTH - LABEL - 70)));
  const share = `${((100 * time) / total).toFixed(1)} %`;
  return (
    `  <text x="${LABEL - 10}" y="${y + 15}" text-anchor="end">${name}</text>\n` +
    `  <rect x="${LABEL}" y="${y}" width="${width}" height="${ROW - 6}" fill="${color}"/>\n` +
    `  <text x="${LABEL + width + 8}" y="${y + 15}">${share}</text>`
  );
});
const height = 24 + bars.length * ROW;
writeFileSync(
  output,
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Where the server's time goes">\n` +
    `  <style>text { font: 13px system-ui, sans-serif; fill: #333; } @media (prefers-color-scheme: dark) { text { fill: #ddd; } }</style>\n` +
    `${rows.join('\n')}\n</svg>\n`,
);
