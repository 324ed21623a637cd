/** How to execute a message by hand: the command and the SDK call, ready to run against this server. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { familyTraits } from '../../../src/domain/chain-families.ts';
import { usesVerifiers } from '../../../src/domain/lifecycle.ts';
import type { Message } from '../../../src/domain/message.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { Segments } from '../parts/controls.tsx';
import { CodeBlock } from '../parts/copy.tsx';
import { api, readinessQuery } from '../server/api-client.ts';
import { serverUrl } from '../server/base-path.ts';

const forms = { command: 'Command line', sdk: 'SDK' } as const;
const ways = { chains: 'Proof from the chains', server: 'Proof from this server' } as const;
type Way = keyof typeof ways;

/** Minimum gas limit for `manual-exec` after a failure that may be due to too little gas. */
const MIN_GAS_LIMIT = 500_000;

export function ManualExecution({ message }: { readonly message: Message }) {
  const [form, setForm] = useState<keyof typeof forms>('command');
  // Verifications of 2.0 are not on the chains before the execution.
  const [way, setWay] = useState<Way>(usesVerifiers(message.version) ? 'server' : 'chains');
  const { data: readiness } = useQuery(readinessQuery);
  const inputs = useQuery({
    queryKey: ['execution-inputs', message.messageId],
    queryFn: ({ signal }) => api.executionInputs(message.messageId, signal),
    // Nothing proves a simulated message.
    enabled: way === 'server' && readiness?.simulated === false,
  });
  const dest = networkName(message.destNetworkInfo);
  const source = networkName(message.sourceNetworkInfo);
  return (
    <div className="manual-execution stack gap-12">
      <div className="manual-choices flow">
        <Segments legend="With which tool" options={forms} chosen={form} onChoose={setForm} />
        <Segments legend="Where the proof comes from" options={ways} chosen={way} onChoose={setWay} />
      </div>
      <p className="muted">
        {way === 'chains'
          ? `Needs an RPC endpoint of ${source} and one of ${dest}; the key of a wallet on ${dest} comes from USER_KEY.`
          : `Needs an RPC endpoint of ${dest} only: this server provides the proof. The key of a wallet comes from USER_KEY.`}
      </p>
      {way === 'server' && inputs.isError && (
        <p className="problem" role="status">
          This server has no proof for this message ({inputs.error.message}) Use the proof from the chains
          instead.
        </p>
      )}
      <CodeBlock
        title={form === 'command' ? 'ccip-cli' : '@chainlink/ccip-sdk'}
        code={form === 'command' ? commandFor(message, way) : sdkCallFor(message, way)}
      />
      {readiness?.simulated && (
        <p className="muted">This message is simulated: no chain accepts the command.</p>
      )}
    </div>
  );
}

/** The gas limit to try after a failure, where no diagnosis has found one. */
export const gasOf = (message: Message) =>
  message.status === 'FAILED' && 'gasLimit' in message.extraArgs && message.extraArgs.gasLimit !== '0'
    ? Math.max(MIN_GAS_LIMIT, 2 * Number(message.extraArgs.gasLimit))
    : null;

function commandFor(message: Message, way: Way): string {
  const { messageId, sendTransactionHash, sendLogIndex } = message;
  const gas = gasOf(message);
  const lines = [
    `ccip-cli manual-exec ${way === 'server' ? messageId : sendTransactionHash}`,
    ...(way === 'server'
      ? [`--api ${serverUrl}`, '--rpc $DEST_RPC']
      : [`--log-index ${sendLogIndex}`, `--api ${serverUrl}`, '--rpc $SOURCE_RPC --rpc $DEST_RPC']),
    ...(gas === null ? [] : [`--gas-limit ${gas}`]),
  ];
  return `export USER_KEY=…  # of a wallet on the destination chain\n${lines.join(' \\\n  ')}`;
}

function sdkCallFor(message: Message, way: Way): string {
  const source = familyTraits(message.sourceNetworkInfo.chainFamily).sdkClass;
  const dest = familyTraits(message.destNetworkInfo.chainFamily).sdkClass;
  const gas = gasOf(message);
  const options = gas === null ? 'wallet' : `wallet, gasLimit: ${gas}`;
  // Up to 1.6 the chains have the whole proof; verifications of 2.0 come from a server.
  const verifications = usesVerifiers(message.version) ? `'${serverUrl}'` : 'null';
  if (way === 'server') {
    return [
      `import { ${dest} } from '@chainlink/ccip-sdk';`,
      '',
      `const dest = await ${dest}.fromUrl(DEST_RPC, { apiClient: '${serverUrl}' });`,
      `await dest.execute({ messageId: '${message.messageId}', ${options} });`,
    ].join('\n');
  }
  return [
    `import { discoverOffRamp, ${[...new Set([source, dest])].join(', ')} } from '@chainlink/ccip-sdk';`,
    '',
    `const source = await ${source}.fromUrl(SOURCE_RPC, { apiClient: null });`,
    `const dest = await ${dest}.fromUrl(DEST_RPC, { apiClient: ${verifications} });`,
    `const requests = await source.getMessagesInTx('${message.sendTransactionHash}');`,
    `const request = requests.find(({ message }) => message.messageId === '${message.messageId}');`,
    'const offRamp = await discoverOffRamp(source, dest, request.lane.onRamp, source);',
    'const verifications = await dest.getVerifications({ offRamp, request });',
    'const input = await source.getExecutionInput({ request, verifications });',
    `await dest.execute({ offRamp, input, ${options} });`,
  ].join('\n');
}
