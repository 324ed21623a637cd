/** All fields of a message, in cards: source, destination, tokens, fees, data and the record itself. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Attempt, Lane, MessageHistory } from '../../../src/client/api-types.ts';
import { blockNoun, blockTitle } from '../../../src/domain/chain-families.ts';
import type { Message, NetworkInfo, TokenAmount, Verifiers } from '../../../src/domain/message.ts';
import {
  contractRole,
  decimalsSources,
  type NamedToken,
  paidAmount,
  tokenAddressesOf,
  transferredAmount,
} from '../../../src/domain/names/message-names.ts';
import { counted, duration, exactTime, grouped, printable, shortHash } from '../../../src/text/format.ts';
import { finalityWords } from '../../../src/text/message-problem.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { abiValues, byteLength, textOf } from '../../../src/text/payload.ts';
import { AddressText } from '../parts/address-text.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import {
  ChainLink,
  laneMessages,
  SearchableHash,
  SearchableShortHash,
  sentMessages,
} from '../parts/hash.tsx';
import { Icon } from '../parts/icons.tsx';
import { claimOf } from '../parts/message-row.tsx';
import { NetworkMark } from '../parts/network.tsx';
import { Segments } from '../parts/segments.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { ExactTime } from '../parts/time.tsx';
import { basePath } from '../server/base-path.ts';
import { useNames } from '../server/names.ts';
import { AttemptsCard } from './attempts-card.tsx';
import { Card, Copyable, Field, Fields } from './card.tsx';
import { FeeChart } from './fee-chart.tsx';

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
      <TokensCard message={message} />
      <ExecutionCard message={message} />
      {attempts && attempts.length > 0 && (
        <AttemptsCard attempts={attempts} network={message.destNetworkInfo} />
      )}
      {message.verifiers && <VerifiersCard message={message} verifiers={message.verifiers} />}
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

function SourceCard({ message }: { readonly message: Message }) {
  const { sourceNetworkInfo, destNetworkInfo, sender, origin, routerAddress, nonce } = message;
  const account = { network: sourceNetworkInfo, page: 'address' } as const;
  return (
    <Card title="Source">
      <Fields>
        <NetworkFields network={sourceNetworkInfo} />
        <Field name="Sender">
          <SearchableHash text={sender} what="sender" filter="sender" at={account} />
        </Field>
        <Field name="Origin">
          {origin === sender ? (
            <span className="muted">the sender</span>
          ) : (
            <SearchableHash text={origin} what="account" filter="address" at={account} />
          )}
        </Field>
        <Field name="Transaction">
          <SearchableHash
            text={message.sendTransactionHash}
            what="transaction"
            filter="sourceTransactionHash"
            at={{ network: sourceNetworkInfo, page: 'transaction' }}
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
          <ChainLink
            text={String(message.sendBlockNumber)}
            what="block"
            at={{ network: sourceNetworkInfo, page: 'block' }}
          />
          <span className="muted"> log {message.sendLogIndex}</span>
        </Field>
        <Field name="On-ramp">
          <SearchableHash
            text={message.onramp}
            what="on-ramp"
            search={laneMessages(sourceNetworkInfo, destNetworkInfo)}
            at={account}
            role={`to ${networkName(destNetworkInfo)}`}
          />
        </Field>
        {routerAddress !== null && (
          <Field name="Router">
            <SearchableHash
              text={routerAddress}
              what="router"
              search={sentMessages(sourceNetworkInfo)}
              at={account}
            />
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
  const account = { network: destNetworkInfo, page: 'address' } as const;
  return (
    <Card title="Destination">
      <Fields>
        <NetworkFields network={destNetworkInfo} />
        <Field name="Receiver">
          <SearchableHash text={receiver} what="receiver" filter="receiver" at={account} />
        </Field>
        <Field name="Transaction">
          {receiptTransactionHash === null ? (
            <span className="muted">not executed yet</span>
          ) : (
            <SearchableHash
              text={receiptTransactionHash}
              what="transaction"
              filter="destTransactionHash"
              at={{ network: destNetworkInfo, page: 'transaction' }}
            />
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
            <SearchableHash
              text={executor.address}
              what="executor"
              search={laneMessages(message.sourceNetworkInfo, destNetworkInfo)}
              at={{ network: message.sourceNetworkInfo, page: 'address' }}
            />
          </Field>
        )}
        {message.offramp !== undefined && (
          <Field name="Off-ramp">
            <SearchableHash
              text={message.offramp}
              what="off-ramp"
              search={laneMessages(message.sourceNetworkInfo, destNetworkInfo)}
              at={account}
              role={`from ${networkName(message.sourceNetworkInfo)}`}
            />
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

function TokensCard({ message }: { readonly message: Message }) {
  const tokens = message.tokenAmounts;
  return (
    <Card
      title={tokens.length > 1 ? 'Tokens' : 'Token'}
      about={tokens.length > 1 ? counted(tokens.length, 'transfer') : undefined}
    >
      {tokens.length === 0 && <p className="muted">This message transfers no token.</p>}
      {tokens.map((token, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the same token may come twice, and their order never changes.
        <TokenFields key={index} token={token} message={message} />
      ))}
    </Card>
  );
}

function TokenFields({ token, message }: { readonly token: TokenAmount; readonly message: Message }) {
  const { sourceNetworkInfo, destNetworkInfo } = message;
  const names = useNames(tokenAddressesOf([message]));
  const sourceToken = names.token(sourceNetworkInfo, token.sourceTokenAddress);
  const amount = transferredAmount(token, sourceToken);
  return (
    <Fields>
      <Field name="Amount">
        {amount === null ? (
          <>
            <strong>{grouped(token.amount)}</strong>{' '}
            <span className="muted">smallest units; decimals not known</span>
            <CopyButton text={token.amount} what="amount in smallest units" />
          </>
        ) : (
          <>
            <strong>{amount.exact}</strong> <TokenSymbol token={sourceToken} />
            <span className="exact muted">
              {amount.decimals} decimals {decimalsSources[amount.source]}: {grouped(token.amount)} smallest
              units
              <CopyButton text={token.amount} what="amount in smallest units" />
            </span>
          </>
        )}
      </Field>
      <Field name="Source token">
        <TokenSymbol token={sourceToken} />
        <SearchableHash
          text={token.sourceTokenAddress}
          what="token"
          filter="sourceTokenAddress"
          at={{ network: sourceNetworkInfo, page: 'token' }}
        />
      </Field>
      <Field name="Source pool">
        <SearchableHash
          text={token.sourcePoolAddress}
          what="pool"
          at={{ network: sourceNetworkInfo, page: 'address' }}
        />
      </Field>
      <Field name="Dest. token">
        <TokenSymbol token={names.token(destNetworkInfo, token.destTokenAddress)} />
        <SearchableHash
          text={token.destTokenAddress}
          what="token"
          at={{ network: destNetworkInfo, page: 'token' }}
        />
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

/** What a token is called. Shown beside the address, never instead of it: anybody can claim any symbol. */
function TokenSymbol({ token }: { readonly token: NamedToken | undefined }) {
  if (!token?.symbol) return null;
  return (
    <bdi className="symbol" title={claimOf(token)}>
      {printable(token.symbol)}
    </bdi>
  );
}

function ExecutionCard({ message: { extraArgs, destNetworkInfo } }: { readonly message: Message }) {
  const account = { network: destNetworkInfo, page: 'address' } as const;
  return (
    <Card title="Execution">
      <Fields>
        {'gasLimit' in extraArgs ? (
          <Field name="Gas limit">{grouped(extraArgs.gasLimit)}</Field>
        ) : (
          <>
            <Field name="Compute units">{grouped(extraArgs.computeUnits)}</Field>
            <Field name="Token receiver">
              <SearchableHash text={printable(extraArgs.tokenReceiver)} what="token receiver" at={account} />
            </Field>
            <Field name="Writable bitmap">
              <code className="wrap">{printable(extraArgs.accountIsWritableBitmap)}</code>
            </Field>
            <Field name="Accounts">
              {extraArgs.accounts.length === 0 ? <span className="muted">none</span> : null}
              {extraArgs.accounts.map((address, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: an account may come twice, and their order never changes.
                <SearchableHash key={index} text={printable(address)} what="account" at={account} />
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

function VerifiersCard({
  message: { sourceNetworkInfo, destNetworkInfo },
  verifiers: { items, optionalThreshold },
}: {
  readonly message: Message;
  readonly verifiers: Verifiers;
}) {
  const messages = laneMessages(sourceNetworkInfo, destNetworkInfo);
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
                <SearchableShortHash
                  text={verifier.sourceAddress}
                  what="verifier on the source chain"
                  search={messages}
                  at={{ network: sourceNetworkInfo, page: 'address' }}
                />
              </span>
              <span className="hash">
                <span className="muted">destination</span>{' '}
                <SearchableShortHash
                  text={verifier.destAddress}
                  what="verifier on the destination chain"
                  search={messages}
                  at={{ network: destNetworkInfo, page: 'address' }}
                />
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
  const names = useNames(tokenAddressesOf([message]));
  const token = names.token(message.sourceNetworkInfo, tokenAddress);
  const amount = paidAmount(totalAmount, token);
  return (
    <Card title="Fees" wide={message.fees.fixedFeesDetails.items !== undefined}>
      <Fields>
        <Field name="Total">
          {amount === null ? (
            <>
              <strong>{grouped(totalAmount)}</strong> <span className="muted">smallest units</span>
              <CopyButton text={totalAmount} what="total fee" />
            </>
          ) : (
            <>
              <strong>{amount.exact}</strong> <TokenSymbol token={token} />
              <span className="exact muted">
                {grouped(totalAmount)} smallest units
                <CopyButton text={totalAmount} what="total fee" />
              </span>
            </>
          )}
        </Field>
        <Field name="Paid in">
          <TokenSymbol token={token} />
          <SearchableHash
            text={tokenAddress}
            what="token"
            search={{
              filters: {
                sourceChainSelector: message.sourceNetworkInfo.chainSelector,
                sourceTokenAddress: tokenAddress,
              },
              words: 'messages that transfer this token',
            }}
            at={{ network: message.sourceNetworkInfo, page: 'token' }}
          />
        </Field>
      </Fields>
      {items.length > 0 && (
        <FeeChart
          items={items}
          total={totalAmount}
          amountOf={(amount) => paidAmount(amount, token)?.exact ?? grouped(amount)}
          roleOf={(address) => contractRole(message, address, names)}
          source={message.sourceNetworkInfo}
          messages={laneMessages(message.sourceNetworkInfo, message.destNetworkInfo)}
        />
      )}
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
                {type === 'address' ? (
                  <code className="wrap">
                    <AddressText text={value} />
                  </code>
                ) : (
                  <LongText text={printable(value)} />
                )}
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
              {reorg && ', removed by a reorganisation'} · position {position}
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
            <a href={`${basePath}/v2/messages/${message.messageId}`}>in the API</a>
          </p>
          <LongText text={JSON.stringify(message, null, 2)} />
        </div>
      )}
    </details>
  );
}
