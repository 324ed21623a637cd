/** All fields of a message, in cards: source, destination, tokens, fees, data and the record itself. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Lane } from '../../../src/client/api-types.ts';
import { blockNoun, blockTitle } from '../../../src/domain/chain-families.ts';
import type { Fees, Message, NetworkInfo, TokenAmount, Verifiers } from '../../../src/domain/message.ts';
import {
  contractRole,
  decimalsSources,
  type NamedToken,
  paidAmount,
  tokenAddressesOf,
  transferredAmount,
} from '../../../src/domain/names/message-names.ts';
import { counted, duration, exactTime, grouped, percent, printable } from '../../../src/text/format.ts';
import { finalityWords } from '../../../src/text/message-problem.ts';
import { networkName } from '../../../src/text/message-words.ts';
import { byteLength } from '../../../src/text/payload.ts';
import { ShareBar } from '../parts/charts.tsx';
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
import { Card } from '../parts/page.tsx';
import { ExactTime } from '../parts/text.tsx';
import { lanesQuery } from '../server/api-client.ts';
import { useNames } from '../server/names.ts';
import { Copyable, Fields, hash, muted } from './fields.tsx';
import { AttemptsCard, ChangesCard, DataCard, RawCard } from './record-cards.tsx';

/** The lane of a message, with its delivery times. */
export function useLane(message: Message): Lane | undefined {
  return useQuery(lanesQuery(laneMessages(message).filters)).data?.data[0];
}

export function MessageDetails({ message }: { readonly message: Message }) {
  return (
    <div className="columns">
      <SourceCard message={message} />
      <DestCard message={message} />
      <TokensCard message={message} />
      <ExecutionCard message={message} />
      <AttemptsCard message={message} />
      {message.verifiers && <VerifiersCard message={message} verifiers={message.verifiers} />}
      <FeesCard message={message} />
      <DataCard data={message.data} wide={message.fees.fixedFeesDetails.items !== undefined} />
      <ChangesCard messageId={message.messageId} />
      <RawCard message={message} />
    </div>
  );
}

function networkWords(network: NetworkInfo): ReactNode {
  return (
    <>
      <span className="flow wrap">
        <NamedNetwork name={networkName(network)} selector={network.chainSelector} />
        {muted(`${network.chainFamily} ${printable(network.chainId)}`)}
      </span>
      <span className="hash whole inline gap-2 muted">
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

function DestCard({ message }: { readonly message: Message }) {
  const { sourceNetworkInfo: source, destNetworkInfo: dest, receiptTimestamp, deliveryTime } = message;
  const usualMs = useLane(message)?.delivery.p50Ms ?? null;
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
      <p className="muted">
        {about}
        {grouped(units)} smallest units
        {copy}
      </p>
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
  const optionalWords =
    optional === 0 ? '' : `, ${done(false)} of ${optional} optional (${optionalThreshold} needed)`;
  return (
    <Card title="Verifiers" wide about={`${done(true)} of ${required} required done${optionalWords}`}>
      <ul className="verifiers">
        {items.map((verifier) => (
          <li key={`${verifier.sourceAddress} ${verifier.destAddress}`}>
            <VerifierView verifier={verifier} message={message} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

type Verifier = Verifiers['items'][number];

function VerifierView({ verifier, message }: { readonly verifier: Verifier; readonly message: Message }) {
  const { sourceNetworkInfo: source, destNetworkInfo: dest } = message;
  const { metadata, isRequired, status, verification, sourceAddress, destAddress } = verifier;
  const isDone = status === 'COMPLETED';
  const address = (end: string, text: string, network: NetworkInfo) => (
    <span className="inline gap-4">
      <span className="muted">{end}</span>
      <SearchableShortHash
        text={text}
        what={`verifier on the ${end} chain`}
        search={laneMessages(message)}
        network={network}
      />
    </span>
  );
  return (
    <>
      <span className="flow bold">
        <bdi className="wrap">{printable(metadata.name)}</bdi>
        <span className="tag">{isRequired ? 'required' : 'optional'}</span>
      </span>
      <span className="small" style={toneOf(isDone ? 'SUCCESS' : 'VERIFYING')}>
        {isDone && <Icon name="tick" />} {isDone ? 'completed' : 'pending'}
        {isDone && verification && muted(` ${exactTime(verification.timestamp)}`)}
      </span>
      <span className="verifier-places flow small">
        {address('source', sourceAddress, source)}
        {address('destination', destAddress, dest)}
        {verification && (
          <span className="inline gap-4">
            <span className="muted">data</span> {counted(byteLength(verification.data), 'byte')}
            <CopyButton text={verification.data} what="verification data" />
          </span>
        )}
      </span>
    </>
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
      {items !== undefined && items.length > 0 && <FeeChart items={items} message={message} />}
    </Card>
  );
}

type FeeItem = NonNullable<Fees['fixedFeesDetails']['items']>[number];

const typeNames: Record<FeeItem['feeType'], string> = {
  VERIFIER: 'Verifier',
  EXECUTOR: 'Executor',
  TOKEN_POOL: 'Token pool',
  NETWORK: 'Network',
};

const colourOf = (index: number) => `var(--part-${Math.min(index, 5)})`;

/** The parts of a fee as a stacked bar, the largest first, and as a list. */
function FeeChart({ items, message }: { readonly items: readonly FeeItem[]; readonly message: Message }) {
  const { sourceNetworkInfo: source, fees } = message;
  const { tokenAddress, totalAmount } = fees.fixedFeesDetails;
  const names = useNames();
  const token = names.token(source, tokenAddress);
  const amountOf = (amount: string) => paidAmount(amount, token)?.exact ?? grouped(amount);
  const roleOf = (address: string) => contractRole(message, address, names) ?? '';
  const sorted = [...items].sort((a, b) => (BigInt(b.amount) > BigInt(a.amount) ? 1 : -1));
  const whole = items.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  // Thousandths are finer than a pixel, and turn amounts of any size into safe numbers.
  const share = (amount: string) => (whole === 0n ? 0 : Number((BigInt(amount) * 1_000n) / whole));
  return (
    <figure className="fee-chart stack gap-12">
      <ShareBar
        parts={sorted.map(({ amount }, key) => ({ key, colour: colourOf(key), value: share(amount) }))}
      />
      <ul>
        {sorted.map(({ feeType, amount, contractAddress }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place.
          <li key={index}>
            <span className="key" style={{ background: colourOf(index) }} />
            <span className="wrap">
              {typeNames[feeType]} <bdi className="muted">{printable(roleOf(contractAddress))}</bdi>
            </span>
            <span className="fee-share wrap">{percent(share(amount), 1_000)}</span>
            <span className="fee-amount muted wrap" title={`${grouped(amount)} smallest units`}>
              {amountOf(amount)}
            </span>
            <SearchableShortHash
              text={contractAddress}
              what="contract"
              search={laneMessages(message)}
              network={source}
            />
          </li>
        ))}
      </ul>
      {whole !== BigInt(totalAmount) && (
        <figcaption className="muted small">
          The parts make {amountOf(String(whole))}, not the total.
        </figcaption>
      )}
    </figure>
  );
}
