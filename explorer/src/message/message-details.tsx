/** All fields of a message, in cards: source, destination, tokens, fees, data and the record itself. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Attempt, Lane, MessageHistory } from '../../../src/client/api-types.ts';
import { blockNoun, blockTitle } from '../../../src/domain/chain-families.ts';
import type { Message, NetworkInfo, TokenAmount, Verifiers } from '../../../src/domain/message.ts';
import {
  decimalsSources,
  type NamedToken,
  paidAmount,
  tokenAddressesOf,
  transferredAmount,
} from '../../../src/domain/names/message-names.ts';
import { counted, duration, exactTime, grouped, printable } from '../../../src/text/format.ts';
import { finalityWords } from '../../../src/text/message-problem.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { byteLength } from '../../../src/text/payload.ts';
import { CopyButton } from '../parts/copy.tsx';
import {
  ChainLink,
  laneMessages,
  SearchableHash,
  SearchableShortHash,
  ShortHash,
  sentMessages,
} from '../parts/hash.tsx';
import { Icon, NamedNetwork, toneOf } from '../parts/icons.tsx';
import { TokenSymbol } from '../parts/message-row.tsx';
import { ExactTime } from '../parts/text.tsx';
import { useNames } from '../server/names.ts';
import { AttemptsCard } from './attempts-card.tsx';
import { Card, Copyable, Fields, hash, muted } from './card.tsx';
import { FeeChart } from './fee-chart.tsx';
import { ChangesCard, DataCard, RawCard } from './record-cards.tsx';

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

function networkWords(network: NetworkInfo): ReactNode {
  return (
    <>
      <span className="network-facts flow">
        <NamedNetwork name={networkName(network)} selector={network.chainSelector} />
        {muted(`${network.chainFamily} ${printable(network.chainId)}`)}
      </span>
      <span className="hash whole muted">
        <span className="wrap">selector {network.chainSelector}</span>
        <CopyButton text={network.chainSelector} what="chain selector" />
      </span>
    </>
  );
}

function SourceCard({ message }: { readonly message: Message }) {
  const { sourceNetworkInfo: source, destNetworkInfo: dest, sender, origin, nonce } = message;
  const block = String(message.sendBlockNumber);
  return (
    <Card title="Source">
      <Fields
        values={{
          Network: networkWords(source),
          Sender: hash(sender, 'sender', source, { filter: 'sender' }),
          Origin:
            origin === sender ? muted('the sender') : hash(origin, 'account', source, { filter: 'address' }),
          Transaction: hash(message.sendTransactionHash, 'transaction', source, {
            filter: 'sourceTransactionHash',
            page: 'transaction',
          }),
          Sent: <ExactTime at={message.sendTimestamp} />,
          [blockTitle(source.chainFamily)]: (
            <>
              <Copyable
                text={block}
                shown={grouped(block)}
                what={`${blockNoun(source.chainFamily)} number`}
              />
              <ChainLink text={block} what="block" network={source} page="block" />
              {muted(` log ${message.sendLogIndex}`)}
            </>
          ),
          'On-ramp': hash(message.onramp, 'on-ramp', source, {
            search: laneMessages(message),
            role: `to ${networkName(dest)}`,
          }),
          Router: hash(message.routerAddress, 'router', source, { search: sentMessages(source) }),
          Sequence: (
            <>
              {grouped(message.sequenceNumber)}
              {nonce !== null && muted(` nonce ${nonce}`)}
            </>
          ),
          Finality: finalityWords(message),
        }}
      />
    </Card>
  );
}

function DestCard({ message, lane }: { readonly message: Message; readonly lane: Lane | undefined }) {
  const { sourceNetworkInfo: source, destNetworkInfo: dest, receiptTimestamp, deliveryTime } = message;
  const usualMs = lane?.delivery.p50Ms ?? null;
  const transaction = hash(message.receiptTransactionHash, 'transaction', dest, {
    filter: 'destTransactionHash',
    page: 'transaction',
  });
  return (
    <Card title="Destination">
      <Fields
        values={{
          Network: networkWords(dest),
          Receiver: hash(message.receiver, 'receiver', dest, { filter: 'receiver' }),
          Transaction: transaction ?? muted('not executed yet'),
          [message.status === 'FAILED' ? 'Failed' : 'Executed']: receiptTimestamp && (
            <ExactTime at={receiptTimestamp} />
          ),
          Took:
            deliveryTime === null ? null : (
              <>
                {duration(deliveryTime)}
                {usualMs !== null && muted(` half of this lane’s take ${duration(usualMs)}`)}
              </>
            ),
          Executor: hash(message.executor?.address, 'executor', source, { search: laneMessages(message) }),
          'Off-ramp': hash(message.offramp, 'off-ramp', dest, {
            search: laneMessages(message),
            role: `from ${networkName(source)}`,
          }),
          Lane: (
            <Link to="/lane/$source/$dest" params={{ source: source.name, dest: dest.name }}>
              All of this lane
            </Link>
          ),
        }}
      />
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
  const { sourceNetworkInfo: source, destNetworkInfo: dest } = message;
  const names = useNames(tokenAddressesOf([message]));
  const sourceToken = names.token(source, token.sourceTokenAddress);
  const amount = transferredAmount(token, sourceToken);
  return (
    <Fields
      values={{
        Amount: amountWords({
          units: token.amount,
          what: 'amount in smallest units',
          exact: amount?.exact,
          token: sourceToken,
          about: amount
            ? `${amount.decimals} decimals ${decimalsSources[amount.source]}: `
            : '; decimals not known',
        }),
        'Source token': (
          <>
            <TokenSymbol token={sourceToken} />
            {hash(token.sourceTokenAddress, 'token', source, { filter: 'sourceTokenAddress', page: 'token' })}
          </>
        ),
        'Source pool': hash(token.sourcePoolAddress, 'pool', source),
        'Dest. token': (
          <>
            <TokenSymbol token={names.token(dest, token.destTokenAddress)} />
            {hash(token.destTokenAddress, 'token', dest, { page: 'token' })}
          </>
        ),
        'Dest. gas': token.destGasAmount && grouped(token.destGasAmount),
        'Extra data': token.extraData && <ShortHash text={token.extraData} what="extra data" />,
      }}
    />
  );
}

interface Amount {
  /** The smallest ones. */
  readonly units: string;
  readonly what: string;
  /** In units that people use; undefined where the decimals are not known. */
  readonly exact: string | undefined;
  readonly token: NamedToken | undefined;
  /** In front of the smallest units; behind them where the decimals are not known. */
  readonly about?: string;
}

function amountWords({ units, what, exact, token, about = '' }: Amount): ReactNode {
  const copy = <CopyButton text={units} what={what} />;
  return exact === undefined ? (
    <>
      <strong>{grouped(units)}</strong> {muted(`smallest units${about}`)}
      {copy}
    </>
  ) : (
    <>
      <strong>{exact}</strong> <TokenSymbol token={token} />
      <span className="exact muted">
        {about}
        {grouped(units)} smallest units
        {copy}
      </span>
    </>
  );
}

function ExecutionCard({ message: { extraArgs, destNetworkInfo: dest } }: { readonly message: Message }) {
  const limits =
    'gasLimit' in extraArgs
      ? { 'Gas limit': grouped(extraArgs.gasLimit) }
      : {
          'Compute units': grouped(extraArgs.computeUnits),
          'Token receiver': hash(printable(extraArgs.tokenReceiver), 'token receiver', dest),
          'Writable bitmap': <code className="wrap">{printable(extraArgs.accountIsWritableBitmap)}</code>,
          Accounts:
            extraArgs.accounts.length === 0
              ? muted('none')
              : extraArgs.accounts.map(printable).map((address, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: an account may come twice, and their order never changes.
                  <SearchableHash key={index} text={address} what="account" network={dest} />
                )),
        };
  const order = extraArgs.allowOutOfOrderExecution
    ? 'may overtake earlier messages'
    : 'after the sender’s earlier messages';
  return (
    <Card title="Execution">
      <Fields values={{ ...limits, Order: order }} />
    </Card>
  );
}

function VerifiersCard({ message, verifiers }: { readonly message: Message; readonly verifiers: Verifiers }) {
  const { items, optionalThreshold } = verifiers;
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
            <span className="verifier-name flow">
              <bdi className="wrap">{printable(verifier.metadata.name)}</bdi>
              <span className="tag">{verifier.isRequired ? 'required' : 'optional'}</span>
            </span>
            {verifier.status === 'COMPLETED' ? (
              <span className="verifier-state" style={toneOf('SUCCESS')}>
                <Icon name="tick" /> completed
                {verifier.verification && (
                  <span className="muted"> {exactTime(verifier.verification.timestamp)}</span>
                )}
              </span>
            ) : (
              <span className="verifier-state" style={toneOf('VERIFYING')}>
                pending
              </span>
            )}
            <span className="verifier-places">
              {(['source', 'destination'] as const).map((end) => (
                <span key={end} className="hash">
                  <span className="muted">{end}</span>{' '}
                  <SearchableShortHash
                    text={end === 'source' ? verifier.sourceAddress : verifier.destAddress}
                    what={`verifier on the ${end} chain`}
                    search={laneMessages(message)}
                    network={end === 'source' ? message.sourceNetworkInfo : message.destNetworkInfo}
                  />
                </span>
              ))}
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
  const { sourceNetworkInfo: source, fees } = message;
  const { tokenAddress, totalAmount, items } = fees.fixedFeesDetails;
  const names = useNames(tokenAddressesOf([message]));
  const token = names.token(source, tokenAddress);
  return (
    <Card title="Fees" wide={items !== undefined}>
      <Fields
        values={{
          Total: amountWords({
            units: totalAmount,
            what: 'total fee',
            exact: paidAmount(totalAmount, token)?.exact,
            token,
          }),
          'Paid in': (
            <>
              <TokenSymbol token={token} />
              {hash(tokenAddress, 'token', source, {
                search: {
                  filters: { sourceChainSelector: source.chainSelector, sourceTokenAddress: tokenAddress },
                  words: 'messages that transfer this token',
                },
                page: 'token',
              })}
            </>
          ),
        }}
      />
      {items !== undefined && items.length > 0 && (
        <FeeChart items={items} total={totalAmount} token={token} message={message} names={names} />
      )}
    </Card>
  );
}
