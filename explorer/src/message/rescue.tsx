/** "Rescue with your wallet": whether an execution would work now, what would be called, and the button that sends it. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Diagnosis, ManualExecution } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { grouped, printable } from '../../../src/text/format.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { ChainLink, laneMessages } from '../parts/hash.tsx';
import { Icon } from '../parts/icons.tsx';
import { AddressText } from '../parts/text.tsx';
import { diagnosisQuery, manualExecutionQuery, readinessQuery } from '../server/api-client.ts';
import { Copyable, Fields, hash, muted } from './card.tsx';
import { gasOf } from './manual-execution.tsx';
import { type SendableTransaction, type Sending, useSending } from './sending.ts';
import { useWallets, type Wallet } from './wallets.ts';

const headings: Readonly<Record<Diagnosis['outcome'], string>> = {
  succeeds: 'It would succeed now',
  fails: 'It would fail now',
  'not-yet': 'Not yet',
  executed: 'Already executed',
  impossible: 'Not from here',
  untried: 'Not tried beforehand',
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
        <p className="problem" role="alert">
          There is no transaction: {printable(execution.error.message)}
        </p>
      )}
      {execution.data && (
        <>
          <WhatIsCalled execution={execution.data} message={message} wouldFail={isDoubtful} />
          {!sendable && (
            <p className="muted">
              It is not sent from here
              {isDoubtful
                ? ': it would not be executed now.'
                : ', because its gas is not known. Use the command below.'}
            </p>
          )}
          {sendable && wallets.length === 0 && (
            <p className="muted">
              No wallet was found in this browser. With a wallet extension you could send it from here;
              otherwise use the command below.
            </p>
          )}
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
  return (
    <div className="rescue-diagnosis stack gap-4" data-outcome={outcome} role="status">
      <strong className="line">
        <Icon name={outcome === 'succeeds' || outcome === 'executed' ? 'tick' : 'info'} />
        {headings[outcome]}
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
    case 'rejected':
      return (
        <p role="alert">
          You declined {sending.what === 'transaction' ? 'the transaction' : 'the request'} in your wallet.
          Nothing was sent.
        </p>
      );
    case 'failed':
      return (
        <p className="problem" role="alert">
          Nothing was sent: {sending.text}
        </p>
      );
    default: {
      const { step, hash } = sending;
      const words = {
        sent: `Sent. It waits to get into a block of ${dest}.`,
        included: `It is in a block of ${dest}. This page shows the outcome as soon as this server has read that block.`,
        reverted: 'The transaction was reverted: the message is as it was before.',
      };
      return (
        <div role="status">
          <p>{words[step]}</p>
          <Copyable text={hash} what="transaction hash" />
          <ChainLink text={hash} what="transaction" network={message.destNetworkInfo} page="transaction" />
        </div>
      );
    }
  }
}
