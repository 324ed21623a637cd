/**
 * Manual execution. "Rescue with your wallet": whether an execution would work now, what would be called, and the button that
 * sends it. Then the command and the SDK call, ready to run against this server.
 */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Diagnosis, ManualExecution } from '../../../src/client/api-types.ts';
import { familyTraits } from '../../../src/domain/chain-families.ts';
import { usesVerifiers } from '../../../src/domain/lifecycle.ts';
import type { Message } from '../../../src/domain/message.ts';
import { grouped, printable } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { Segments } from '../parts/controls.tsx';
import { CodeBlock } from '../parts/copy.tsx';
import { ChainLink, laneMessages } from '../parts/hash.tsx';
import { Icon } from '../parts/icons.tsx';
import { AddressText } from '../parts/text.tsx';
import {
  api,
  diagnosisQuery,
  manualExecutionQuery,
  readinessQuery,
  serverUrl,
} from '../server/api-client.ts';
import { Copyable, Fields, hash, muted } from './fields.tsx';
import { type SendableTransaction, type Sending, useSending, useWallets, type Wallet } from './wallets.ts';

/** The heading of each outcome, and its colour. */
const outcomes: Readonly<Record<Diagnosis['outcome'], readonly [heading: string, tone: string]>> = {
  succeeds: ['It would succeed now', 'done'],
  fails: ['It would fail now', 'failed'],
  'not-yet': ['Not yet', 'text'],
  executed: ['Already executed', 'done'],
  impossible: ['Not from here', 'text'],
  untried: ['Not tried beforehand', 'text'],
};

export function Rescue({ message }: { readonly message: Message }) {
  const { data: readiness } = useQuery(readinessQuery);
  if (message.destNetworkInfo.chainFamily !== 'EVM' || readiness === undefined) return null;
  return (
    <section className="rescue stack gap-12" aria-labelledby="rescue">
      <h3 id="rescue">Rescue with your wallet</h3>
      {readiness.simulated ? (
        <p className="muted">This message is simulated: there is nothing to send.</p>
      ) : (
        // What is typed belongs to one message.
        <RealRescue key={message.messageId} message={message} />
      )}
    </section>
  );
}

function RealRescue({ message }: { readonly message: Message }) {
  const diagnosis = useQuery(diagnosisQuery(message));
  const [typed, setTyped] = useState<string | null>(null);
  const isTried = diagnosis.data !== undefined && diagnosis.data.outcome !== 'untried';
  const proposed = isTried ? diagnosis.data.gasLimit : gasOf(message);
  const gasLimit = typed ?? String(proposed ?? '');
  // The transaction depends on the gas limit that the diagnosis proposes.
  const execution = useQuery({
    ...manualExecutionQuery(message, gasLimit, typed !== null),
    enabled: !diagnosis.isPending && canBeBuilt(diagnosis.data) && /^\d*$/.test(gasLimit),
  });
  const state = useSending(message);
  const wallets = useWallets();
  // The trial of this very transaction says more than the diagnosis, which is of another gas limit where one was typed.
  const outcome = execution.data?.trial ?? diagnosis.data?.outcome ?? 'untried';
  const isDoubtful = outcome !== 'succeeds' && outcome !== 'untried';
  const sendable = sendableTransaction(execution.data);
  return (
    <>
      {diagnosis.data ? (
        <DiagnosisText diagnosis={diagnosis.data} />
      ) : (
        <p className="muted">
          {diagnosis.isPending
            ? 'Trying the execution on the destination…'
            : `The execution could not be tried beforehand. ${printable(diagnosis.error?.message ?? '')}`}
        </p>
      )}
      {canBeBuilt(diagnosis.data) && !diagnosis.isPending && (
        <label className="rescue-gas stack gap-4">
          <span>Gas limit for the receiver</span>
          <input
            className="field"
            inputMode="numeric"
            value={gasLimit}
            placeholder={
              'gasLimit' in message.extraArgs ? `${grouped(message.extraArgs.gasLimit)} (as sent)` : ''
            }
            aria-invalid={!/^\d*$/.test(gasLimit)}
            onChange={({ target }) => setTyped(target.value.trim())}
          />
        </label>
      )}
      {execution.error && (
        <Problem words={`There is no transaction: ${printable(execution.error.message)}`} />
      )}
      {execution.data && (
        <>
          <WhatIsCalled execution={execution.data} message={message} wouldFail={isDoubtful} />
          {!(sendable && wallets.length > 0) && <p className="muted">{whyNotSent(isDoubtful, sendable)}</p>}
          {sendable && wallets.length > 0 && (
            <div className="flow gap-8">
              {wallets.map((wallet) => (
                <button
                  key={wallet.id}
                  type="button"
                  className={`button${isDoubtful ? '' : ' primary'}`}
                  disabled={['asking', 'sent', 'included'].includes(state.sending.step)}
                  onClick={() => state.send(wallet, sendable)}
                >
                  {isDoubtful ? 'Send anyway with' : 'Send with'} {wallet.name}
                </button>
              ))}
            </div>
          )}
          <SendingText
            sending={state.sending}
            message={message}
            onSwitch={(wallet) => sendable && state.switchAndSend(wallet, sendable)}
          />
        </>
      )}
    </>
  );
}

function whyNotSent(isDoubtful: boolean, sendable: SendableTransaction | undefined): string {
  if (sendable)
    return 'No wallet was found in this browser. With a wallet extension you could send it from here; otherwise use the command below.';
  return isDoubtful
    ? 'It is not sent from here: it would not be executed now.'
    : 'It is not sent from here, because its gas is not known. Use the command below.';
}

const Problem = ({ words }: { readonly words: string }) => (
  <p className="problem" role="alert">
    {words}
  </p>
);

/** Without gas a wallet would estimate it, which may be too little: the fee would be lost and the message failed. */
function sendableTransaction(execution: ManualExecution | undefined): SendableTransaction | undefined {
  if (execution === undefined || execution.transaction.gas === null) return undefined;
  return { ...execution.transaction, gas: execution.transaction.gas };
}

/** Otherwise the server would reject the request. Without a diagnosis, it is asked. */
function canBeBuilt(diagnosis: Diagnosis | undefined): boolean {
  return diagnosis === undefined || ['succeeds', 'fails', 'untried'].includes(diagnosis.outcome);
}

function DiagnosisText({ diagnosis }: { readonly diagnosis: Diagnosis }) {
  const { outcome, text, reason, block, gasLimit } = diagnosis;
  const [heading, tone] = outcomes[outcome];
  return (
    <div className="rescue-diagnosis stack gap-4" role="status">
      <strong className="line" style={{ color: `var(--${tone})` }}>
        <Icon name={tone === 'done' ? 'tick' : 'info'} />
        {heading}
      </strong>
      {(outcome !== 'succeeds' || gasLimit !== null) && (
        <p>
          <AddressText text={printable(text)} />
        </p>
      )}
      {reason && (
        <p>
          <AddressText text={printable(reason.advice)} />
        </p>
      )}
      {block && (
        <p className="muted">Tried on block {grouped(String(block.number))}, without sending anything.</p>
      )}
    </div>
  );
}

interface WhatIsCalledProps {
  readonly execution: ManualExecution;
  readonly message: Message;
  readonly wouldFail: boolean;
}

function WhatIsCalled({ execution, message, wouldFail }: WhatIsCalledProps) {
  const { transaction, call, gasLimit, inputs, gasNote } = execution;
  const { override, message: asSent } = gasLimit;
  return (
    <Fields
      values={{
        Network: (
          <>
            {networkName(message.destNetworkInfo)} {muted(`chain id ${transaction.chainId}`)}
          </>
        ),
        Contract: (
          <>
            {hash(transaction.to, 'off-ramp', message.destNetworkInfo, { search: laneMessages(message) })}
            {muted(`the off-ramp${inputs === 'mirror' ? ', as the mirrored server names it: check it' : ''}`)}
          </>
        ),
        Function: (
          <>
            <code>{call.function}</code> {muted('no value is sent; the call is open to anybody')}
          </>
        ),
        'Gas limit':
          override === null
            ? `${grouped(asSent)} for the receiver, as sent`
            : `${grouped(override)} for the receiver, instead of ${grouped(asSent)}`,
        Gas: (
          <>
            {transaction.gas !== null &&
              `${grouped(String(BigInt(transaction.gas)))} for the transaction, at most `}
            {gasNote !== null &&
              muted(wouldFail ? 'not estimated, because it would fail' : printable(gasNote))}
          </>
        ),
        Data: (
          <Copyable
            text={transaction.data}
            what="call data"
            shown={`${grouped(String(transaction.data.length / 2 - 1))} bytes`}
          />
        ),
      }}
    />
  );
}

interface SendingTextProps {
  readonly sending: Sending;
  readonly message: Message;
  readonly onSwitch: (wallet: Wallet) => void;
}

function SendingText({ sending, message, onSwitch }: SendingTextProps) {
  const dest = networkName(message.destNetworkInfo);
  switch (sending.step) {
    case 'idle':
      return null;
    case 'asking':
      return <p role="status">Your wallet asks you. Answer there.</p>;
    case 'wrong-chain':
      return (
        <div className="flow gap-8" role="alert">
          <p>
            Your wallet is on chain {sending.chainId}, and this goes to {dest}.
          </p>
          <button type="button" className="button primary" onClick={() => onSwitch(sending.wallet)}>
            Switch to {dest}
          </button>
        </div>
      );
    case 'rejected': {
      const what = sending.what === 'transaction' ? 'the transaction' : 'the request';
      return <p role="alert">{`You declined ${what} in your wallet. Nothing was sent.`}</p>;
    }
    case 'failed':
      return <Problem words={`Nothing was sent: ${sending.text}`} />;
    default: {
      const { step, hash: sent } = sending;
      const words = {
        sent: `Sent. It waits to get into a block of ${dest}.`,
        included: `It is in a block of ${dest}. This page shows the outcome as soon as this server has read that block.`,
        reverted: 'The transaction was reverted: the message is as it was before.',
      };
      return (
        <div role="status">
          <p>{words[step]}</p>
          <Copyable text={sent} what="transaction hash" />
          <ChainLink text={sent} what="transaction" network={message.destNetworkInfo} page="transaction" />
        </div>
      );
    }
  }
}

// ---- Commands

const forms = { command: 'Command line', sdk: 'SDK' } as const;
const ways = { chains: 'Proof from the chains', server: 'Proof from this server' } as const;
type Way = keyof typeof ways;

/** Minimum gas limit for `manual-exec` after a failure that may be due to too little gas. */
const MIN_GAS_LIMIT = 500_000;

export function ManualCommands({ message }: { readonly message: Message }) {
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
      <div className="flow gap-8">
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
const gasOf = (message: Message) =>
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
