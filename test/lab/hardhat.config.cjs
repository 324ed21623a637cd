/**
 * A node of the lab. `nodes.ts` starts hardhat with this file and says in LAB_NODE what the node shall be like.
 *
 * It lives exactly as long as somebody holds the other end of its standard input: however the process that started
 * it ends, the pipe closes, and the node goes with it and clears its folder.
 */
const { rmSync } = require('node:fs');

const { chainId, folder } = JSON.parse(process.env.LAB_NODE ?? '{}');

process.stdin
  .on('end', () => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  })
  .resume();

module.exports = {
  solidity: '0.8.26',
  paths: { root: folder, cache: `${folder}/cache`, artifacts: `${folder}/artifacts` },
  networks: {
    hardhat: {
      chainId,
      // Later rules cap a transaction's gas at a sixteenth of what a batch of messages takes.
      hardfork: 'prague',
      allowUnlimitedContractSize: true,
      // Otherwise every block would push the clock a second ahead of the other node's.
      allowBlocksWithSameTimestamp: true,
      blockGasLimit: 1_000_000_000,
      accounts: { count: 40, accountsBalance: `1${'0'.repeat(24)}` },
      loggingEnabled: false,
    },
  },
};
