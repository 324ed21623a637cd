/** All fields of a message, in cards: source, destination, tokens, fees, data and the record itself. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { blockNoun, blockTitle } from '../../../src/domain/block-noun.ts';
import {
  type Message,
  type NetworkInfo,
  requestedFinality,
  type TokenAmount,
  type Verifiers,
} from '../../../src/domain/message.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import {
  counted,
  duration,
  exactTime,
  grouped,
  networkName,
  printable,
  shortHash,
  tokenDecimals,
  withDecimals,
} from '../parts/format.ts';
import { SearchableHash } from '../parts/hash.tsx';
import { Icon } from '../parts/icons.tsx';
import { NetworkMark } from '../parts/network.tsx';
import { Segments } from '../parts/segments.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { ExactTime } from '../parts/time.tsx';
import type { Attempt, Lane, MessageHistory } from '../server/api-types.ts';
import { AttemptsCard } from './attempts-card.tsx';
import { Card, Copyable, Field, Fields } from './card.tsx';
import { FeeChart } from './fee-chart.tsx';
import { abiValues, byteLength, textOf } from './payload.ts';

interface DetailsProps {
  readonly message: Message;
  readonly history: MessageHistory | undefined;
  readonly attempts: readonly Attempt[] | undefined;
  readonly lane: Lane | undefined;
}

export function MessageDetails({ message, history, attempts, lane }: DetailsProps) {
  return (
    <div className="details">
      <SourceCard message={message} />
      <DestCard message={message} lane={lane} />
      <TokensCard tokens={message.tokenAmounts} />
      <ExecutionCard message={message} />
      {attempts && attempts.length > 0 && (
        <AttemptsCard attempts={attempts} family={message.destNetworkInfo.chainFamily} />
      )}
      {message.verifiers && <VerifiersCard verifiers={message.verifiers} />}
      <FeesCard message={message} />
      <DataCard data={message.data} wide={message.fees.fixedFeesDetails.items !== undefined} />
      {history && <ChangesCard history={history} />}
      <RawCard message={message} />
    </div>
  );
}

function NetworkFields({ network }: { readonly network: NetworkInfo }) {
  return (
    <Field name="Network">
      <span className="network-facts">
        <span className="network">
          <NetworkMark name={networkName(network)} seed={network.chainSelector} />
          <bdi>{networkName(network)}</bdi>
        </span>
        <span className="muted">
          {network.chainFamily} {printable(network.chainId)}
        </span>
      </span>
      <span className="hash whole muted">
        <span className="wrap">selector {network.chainSelector}</span>
        <CopyButton text={network.chainSelector} what="chain selector" />
      </span>
    </Field>
  );
}

function finalityWords(message: Message): string {
  const requested = requestedFinality(message);
  if (requested === 'finalized') return 'the chain’s own';
  return requested === 'safe' ? 'the safe head' : counted(requested, 'block confirmation');
}

function SourceCard({ message }: { readonly message: Message }) {
  const { sourceNetworkInfo, sender, origin, routerAddress, nonce } = message;
  return (
    <Card title="Source">
      <Fields>
        <NetworkFields network={sourceNetworkInfo} />
        <Field name="Sender">
          <SearchableHash text={sender} what="sender" filter="sender" />
        </Field>
        <Field name="Origin">
          {origin === sender ? (
            <span className="muted">the sender</span>
          ) : (
            <SearchableHash text={origin} what="account" filter="address" />
          )}
        </Field>
        <Field name="Transaction">
          <SearchableHash
            text={message.sendTransactionHash}
            what="transaction"
            filter="sourceTransactionHash"
          />
        </Field>
        <Field name="Sent">
          <ExactTime at={message.sendTimestamp} />
        </Field>
        <Field name={blockTitle(sourceNetworkInfo.chainFamily)}>
          <Copyable
            text={String(message.sendBlockNumber)}
            shown={grouped(message.sendBlockNumber)}
            what={`${blockNoun(sourceNetworkInfo.chainFamily)} number`}
          />
          <span className="muted"> log {message.sendLogIndex}</span>
        </Field>
        <Field name="On-ramp">
          <Copyable text={message.onramp} what="on-ramp" />
        </Field>
        {routerAddress !== null && (
          <Field name="Router">
            <Copyable text={routerAddress} what="router" />
          </Field>
        )}
        <Field name="Sequence">
          {grouped(message.sequenceNumber)}
          {nonce !== null && <span className="muted"> nonce {nonce}</span>}
        </Field>
        <Field name="Finality">{finalityWords(message)}</Field>
      </Fields>
    </Card>
  );
}

function DestCard({ message, lane }: { readonly message: Message; readonly lane: Lane | undefined }) {
  const { destNetworkInfo, receiver, receiptTransactionHash, receiptTimestamp, deliveryTime, executor } =
    message;
  const { p50Ms } = lane?.delivery ?? {};
  return (
    <Card title="Destination">
      <Fields>
        <NetworkFields network={destNetworkInfo} />
        <Field name="Receiver">
          <SearchableHash text={receiver} what="receiver" filter="receiver" />
        </Field>
        <Field name="Transaction">
          {receiptTransactionHash === null ? (
            <span className="muted">not executed yet</span>
          ) : (
            <SearchableHash text={receiptTransactionHash} what="transaction" filter="destTransactionHash" />
          )}
        </Field>
        {receiptTimestamp !== null && (
          <Field name={message.status === 'FAILED' ? 'Failed' : 'Executed'}>
            <ExactTime at={receiptTimestamp} />
          </Field>
        )}
        {deliveryTime !== null && (
          <Field name="Took">
            {duration(deliveryTime)}
            {p50Ms !== null && p50Ms !== undefined && (
              <span className="muted"> half of this lane’s take {duration(p50Ms)}</span>
            )}
          </Field>
        )}
        {executor && (
          <Field name="Executor">
            <Copyable text={executor.address} what="executor" />
          </Field>
        )}
        <Field name="Lane">
          <Link
            to="/lane/$source/$dest"
            params={{ source: message.sourceNetworkInfo.name, dest: destNetworkInfo.name }}
          >
            All of this lane
          </Link>
        </Field>
      </Fields>
    </Card>
  );
}

function TokensCard({ tokens }: { readonly tokens: readonly TokenAmount[] }) {
  return (
    <Card
      title={tokens.length > 1 ? 'Tokens' : 'Token'}
      about={tokens.length > 1 ? counted(tokens.length, 'transfer') : undefined}
    >
      {tokens.length === 0 && <p className="muted">No token goes with this message.</p>}
      {tokens.map((token, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same token may come twice, and their order never changes.
        <TokenFields key={index} token={token} />
      ))}
    </Card>
  );
}

function TokenFields({ token }: { readonly token: TokenAmount }) {
  const decimals = tokenDecimals(token);
  return (
    <Fields>
      <Field name="Amount">
        {decimals === null ? (
          <>
            <strong>{grouped(token.amount)}</strong>{' '}
            <span className="muted">smallest units; decimals not known</span>
          </>
        ) : (
          <>
            <strong>{withDecimals(token.amount, decimals)}</strong>{' '}
            <span className="muted">{decimals} decimals, as the source pool says</span>
          </>
        )}
        <CopyButton text={token.amount} what="amount in smallest units" />
      </Field>
      <Field name="Source token">
        <SearchableHash text={token.sourceTokenAddress} what="token" filter="sourceTokenAddress" />
      </Field>
      <Field name="Source pool">
        <SearchableHash text={token.sourcePoolAddress} what="pool" />
      </Field>
      <Field name="Dest. token">
        <SearchableHash text={token.destTokenAddress} what="token" />
      </Field>
      {token.destGasAmount !== null && <Field name="Dest. gas">{grouped(token.destGasAmount)}</Field>}
      {token.extraData !== null && (
        <Field name="Extra data">
          <span className="hash">
            <code title={token.extraData.slice(0, 2_000)}>{shortHash(token.extraData)}</code>
            <CopyButton text={token.extraData} what="extra data" />
          </span>
        </Field>
      )}
    </Fields>
  );
}

function ExecutionCard({ message: { extraArgs } }: { readonly message: Message }) {
  return (
    <Card title="Execution">
      <Fields>
        {'gasLimit' in extraArgs ? (
          <Field name="Gas limit">{grouped(extraArgs.gasLimit)}</Field>
        ) : (
          <>
            <Field name="Compute units">{grouped(extraArgs.computeUnits)}</Field>
            <Field name="Token receiver">
              <Copyable text={printable(extraArgs.tokenReceiver)} what="token receiver" />
            </Field>
            <Field name="Writable bitmap">
              <code className="wrap">{printable(extraArgs.accountIsWritableBitmap)}</code>
            </Field>
            <Field name="Accounts">
              {extraArgs.accounts.length === 0 ? <span className="muted">none</span> : null}
              {extraArgs.accounts.map((account, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: an account may come twice, and their order never changes.
                <Copyable key={index} text={printable(account)} what="account" />
              ))}
            </Field>
          </>
        )}
        <Field name="Order">
          {extraArgs.allowOutOfOrderExecution
            ? 'may overtake earlier messages'
            : 'after the sender’s earlier messages'}
        </Field>
      </Fields>
    </Card>
  );
}

function VerifiersCard({ verifiers: { items, optionalThreshold } }: { readonly verifiers: Verifiers }) {
  const done = (isRequired: boolean) =>
    items.filter((item) => item.isRequired === isRequired && item.status === 'COMPLETED').length;
  const required = items.filter(({ isRequired }) => isRequired).length;
  const optional = items.length - required;
  return (
    <Card
      title="Verifiers"
      wide
      about={`${done(true)} of ${required} required done${optional === 0 ? '' : `, ${done(false)} of ${optional} optional (${optionalThreshold} needed)`}`}
    >
      <ul className="verifiers">
        {items.map((verifier) => (
          <li key={`${verifier.sourceAddress} ${verifier.destAddress}`}>
            <span className="verifier-name">
              <bdi>{printable(verifier.metadata.name)}</bdi>
              <span className="tag">{verifier.isRequired ? 'required' : 'optional'}</span>
            </span>
            {verifier.status === 'COMPLETED' ? (
              <span className="tone-done verifier-state">
                <Icon name="tick" /> completed
                {verifier.verification && (
                  <span className="muted"> {exactTime(verifier.verification.timestamp)}</span>
                )}
              </span>
            ) : (
              <span className="tone-moving verifier-state">pending</span>
            )}
            <span className="verifier-places">
              <span className="hash">
                <span className="muted">source</span>{' '}
                <code title={verifier.sourceAddress}>{shortHash(verifier.sourceAddress)}</code>
                <CopyButton text={verifier.sourceAddress} what="verifier on the source chain" />
              </span>
              <span className="hash">
                <span className="muted">destination</span>{' '}
                <code title={verifier.destAddress}>{shortHash(verifier.destAddress)}</code>
                <CopyButton text={verifier.destAddress} what="verifier on the destination chain" />
              </span>
              {verifier.verification && (
                <span className="hash">
                  <span className="muted">data</span>{' '}
                  {counted(byteLength(verifier.verification.data), 'byte')}
                  <CopyButton text={verifier.verification.data} what="verification data" />
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function FeesCard({ message }: { readonly message: Message }) {
  const { tokenAddress, totalAmount, items = [] } = message.fees.fixedFeesDetails;
  return (
    <Card title="Fees" wide={message.fees.fixedFeesDetails.items !== undefined}>
      <Fields>
        <Field name="Total">
          <strong>{grouped(totalAmount)}</strong> <span className="muted">smallest units</span>
          <CopyButton text={totalAmount} what="total fee" />
        </Field>
        <Field name="Paid in">
          <SearchableHash text={tokenAddress} what="token" />
        </Field>
      </Fields>
      {items.length > 0 && <FeeChart items={items} total={totalAmount} />}
    </Card>
  );
}

// ---- Data

/** Longer data is shown only on request. */
const SHOWN_CHARACTERS = 2_048;

type DataView = 'decoded' | 'text' | 'hex';
const dataViews: Record<DataView, string> = { decoded: 'Decoded', text: 'Text', hex: 'Hex' };

function DataCard({ data, wide }: { readonly data: string | null; readonly wide: boolean }) {
  const [chosen, setChosen] = useState<DataView>();
  if (data === null || data === '0x') {
    return (
      <Card title="Data" wide={wide}>
        <p className="muted">{data === null ? 'Not known.' : 'None.'}</p>
      </Card>
    );
  }
  const decoded = abiValues(data);
  const text = textOf(data);
  const offered: readonly DataView[] = [
    ...(decoded ? ['decoded' as const] : []),
    ...(text === null ? [] : ['text' as const]),
    'hex',
  ];
  const view = chosen ?? offered[0] ?? 'hex';
  return (
    <Card
      title="Data"
      wide={wide}
      about={
        <>
          {counted(byteLength(data), 'byte')}
          <CopyButton text={data} what="data" />
        </>
      }
    >
      <Segments
        legend="How to show the data"
        options={Object.fromEntries(offered.map((one) => [one, dataViews[one]])) as Record<DataView, string>}
        chosen={view}
        onChoose={setChosen}
      />
      {view === 'decoded' && decoded && (
        <>
          <ol className="abi">
            {decoded.map(({ type, text: value }, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a value is known by its place.
              <li key={index}>
                <span className="tag">{type}</span>
                <LongText text={printable(value)} />
              </li>
            ))}
          </ol>
          <p className="muted note">
            Read as plain ABI. The types are what the words look like; only the receiver knows them.
          </p>
        </>
      )}
      {view === 'text' && text !== null && <LongText text={printableLines(text)} />}
      {view === 'hex' && <LongText text={data} />}
    </Card>
  );
}

const printableLines = (text: string) => text.split('\n').map(printable).join('\n');

function LongText({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_CHARACTERS;
  return (
    <div className="long-text">
      <bdi>
        <code>{isLong && !isWhole ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text}</code>
      </bdi>
      {isLong && (
        <button type="button" className="button" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show less' : `Show all ${grouped(text.length)} characters`}
        </button>
      )}
    </div>
  );
}

// ---- Recorded changes, and the raw record

function ChangesCard({ history: { changes, truncated } }: { readonly history: MessageHistory }) {
  return (
    <details className="card card-wide">
      <summary>
        <h2>What Lanescan recorded</h2>
        <span className="muted">
          {truncated && 'the latest '}
          {counted(changes.length, 'change')}
        </span>
      </summary>
      <ol className="changes">
        {changes.map(({ position, change, status, reorg, recordedAt }) => (
          <li key={position}>
            <time dateTime={recordedAt}>{exactTime(recordedAt)}</time>
            <StatusBadge status={status} />
            <span className="muted">
              {change}
              {reorg && ', taken back by a reorganisation'} · position {position}
            </span>
          </li>
        ))}
      </ol>
    </details>
  );
}

function RawCard({ message }: { readonly message: Message }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="card card-wide" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <h2>Raw record</h2>
        <span className="muted">JSON</span>
      </summary>
      {isOpen && (
        <div className="raw">
          <p>
            <CopyButton text={() => JSON.stringify(message, null, 2)} what="record">
              Copy JSON
            </CopyButton>{' '}
            <a href={`/v2/messages/${message.messageId}`}>in the API</a>
          </p>
          <LongText text={JSON.stringify(message, null, 2)} />
        </div>
      )}
    </details>
  );
}
