/**
 * What the tests need: sources without errors, dist/ built from them, the packages of the lab. The three run side by side,
 * because the lab's packages mostly wait for the network and the disk. Each one's output is printed when it ends.
 */
import { spawn } from 'node:child_process';

const steps = [
  { name: 'check', commands: ['npm run --silent check'] },
  {
    name: 'build',
    commands: [
      // Types are the check's work; without them this takes a quarter of the time.
      'tsc -p tsconfig.build.json --noCheck',
      'npm run --silent build:assets',
      'node scripts/mark-built.mjs',
    ],
  },
  { name: 'lab', commands: ['npm run --silent lab:install'] },
];

const failed = (await Promise.all(steps.map(run))).filter(({ status }) => status !== 0);
for (const { name, status } of failed) console.error(`${name}: failed (${status}). Its output is above.`);
process.exitCode = failed.length === 0 ? 0 : 1;

function run({ name, commands }) {
  return new Promise((resolve) => {
    const output = [];
    const child = spawn(commands.join(' && '), { shell: true, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => output.push(bytes));
    child.on('error', (error) => resolve({ name, status: error.message }));
    child.on('close', (code, signal) => {
      console.log(`${name}: ${code === 0 ? 'done' : 'failed'}`);
      process.stdout.write(Buffer.concat(output));
      resolve({ name, status: signal ?? code });
    });
  });
}
