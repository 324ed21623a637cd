// Pictures of the explorer's main pages on the demo's network, for docs/screenshots: all, or those named. Needs Chromium.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { chromium } from 'playwright-core';

const MAX_BYTES = 100_000;
const folder = path.resolve('docs/screenshots');
const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const lane = '/lane/ethereum-testnet-sepolia/ethereum-testnet-sepolia-base-1';
const desk = { width: 1280, height: 800 };
const phone = { width: 390, height: 780 };

const wanted = process.argv.slice(2);
const port = await freePort();
const url = `http://127.0.0.1:${port}`;
const data = mkdtempSync(path.join(os.tmpdir(), 'lanescan-screenshots-'));
const demo = spawn(process.execPath, ['bin/lanescan', 'demo', '--port', String(port), '--data', data], {
  stdio: 'ignore',
});
try {
  await untilReady();
  // Some live traffic, so that every status is there.
  await delay(40_000);
  const shots = [
    ['search', '/', desk],
    ['message', `/message/${await idOfReason('TokenRateLimitReached')}`, desk],
    ['failures', '/failure', { width: 1280, height: 1160 }],
    ['lanes', '/lane', desk],
    ['lane', lane, desk],
    ['overview', '/overview', desk],
    ['search-phone', '/', phone],
    ['message-phone', `/message/${await idOf('status=BLESSED,VERIFYING,COMMITTED')}`, phone],
  ];
  const browser = await chromium.launch({
    executablePath: places.find((place) => existsSync(place)),
    args: ['--disable-background-networking', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
  });
  mkdirSync(folder, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    for (const [name, at, viewport] of shots) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      const context = await browser.newContext({
        viewport,
        colorScheme,
        reducedMotion: 'reduce',
        deviceScaleFactor: 1.5,
      });
      const page = await context.newPage();
      await page.goto(url + at);
      await page.locator('.rows .row-link, .timeline, .matrix-cell, .chart').first().waitFor();
      await delay(1_000);
      const bytes = await smallPicture(page);
      writeFileSync(path.join(folder, `${name}-${colorScheme}.webp`), bytes);
      console.log(`${name}-${colorScheme}.webp: ${Math.round(bytes.length / 1000)} kB`);
      await context.close();
    }
  }
  await browser.close();
} finally {
  demo.kill();
  await once(demo, 'close');
  rmSync(data, { recursive: true, force: true });
}

async function smallPicture(page) {
  const session = await page.context().newCDPSession(page);
  for (let quality = 80; ; quality -= 15) {
    const { data: picture } = await session.send('Page.captureScreenshot', { format: 'webp', quality });
    const bytes = Buffer.from(picture, 'base64');
    if (bytes.length < MAX_BYTES || quality < 30) return bytes;
  }
}

async function idOf(query) {
  const answer = await fetch(`${url}/v2/messages?limit=1&view=summary&${query}`);
  return (await answer.json()).data[0].messageId;
}

/** The newest failed message with this reason. */
async function idOfReason(code) {
  const { reasons } = await (await fetch(`${url}/v2/stats/failures?windowDays=30`)).json();
  return reasons.find((reason) => reason.code === code).newest[0].messageId;
}

async function untilReady() {
  for (let attempt = 0; attempt < 3_000; attempt++) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    await delay(200);
  }
  throw new Error('The demo did not start.');
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: free } = server.address();
  server.close();
  await once(server, 'close');
  return free;
}
