/** All fields of a message, in cards: source, destination, tokens, fees, data and the record itself. */
import { Link } from '@tanstack/react-router';
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
import { Icon, NamedNetwork } from '../parts/icons.tsx';
import { TokenSymbol } from '../parts/message-row.tsx';
import { ExactTime } from '../parts/text.tsx';
import { useNames } from '../server/names.ts';
import { AttemptsCard } from './attempts-card.tsx';
import { Card, Copyable, Field, Fields, HashField } from './card.tsx';
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

function NetworkFields({ network }: { readonly network: NetworkInfo }) {
  return (
    <Field name="Network">
      <span className="network-facts">
        <NamedNetwork name={networkName(network)} selector={network.chainSelector} />
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
  const { sourceNetworkInfo: source, destNetworkInfo: dest, sender, origin, nonce } = message;
  const block = String(message.sendBlockNumber);
  return (
    <Card title="Source">
      <Fields>
        <NetworkFields network={source} />
        <HashField name="Sender" text={sender} filter="sender" network={source} />
        <HashField
          name="Origin"
          text={origin === sender ? null : origin}
          none="the sender"
          what="account"
          filter="address"
          network={source}
        />
        <HashField
          name="Transaction"
          text={message.sendTransactionHash}
          filter="sourceTransactionHash"
          network={source}
          page="transaction"
        />
        <Field name="Sent">
          <ExactTime at={message.sendTimestamp} />
        </Field>
        <Field name={blockTitle(source.chainFamily)}>
          <Copyable text={block} shown={grouped(block)} what={`${blockNoun(source.chainFamily)} number`} />
          <ChainLink text={block} what="block" network={source} page="block" />
          <span className="muted"> log {message.sendLogIndex}</span>
        </Field>
        <HashField
          name="On-ramp"
          text={message.onramp}
          search={laneMessages(message)}
          network={source}
          role={`to ${networkName(dest)}`}
        />
        <HashField
          name="Router"
          text={message.routerAddress}
          search={sentMessages(source)}
          network={source}
        />
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
  const { sourceNetworkInfo: source, destNetworkInfo: dest, receiptTimestamp, deliveryTime } = message;
  const usualMs = lane?.delivery.p50Ms ?? null;
  return (
    <Card title="Destination">
      <Fields>
        <NetworkFields network={dest} />
        <HashField name="Receiver" text={message.receiver} filter="receiver" network={dest} />
        <HashField
          name="Transaction"
          text={message.receiptTransactionHash}
          none="not executed yet"
          filter="destTransactionHash"
          network={dest}
          page="transaction"
        />
        {receiptTimestamp !== null && (
          <Field name={message.status === 'FAILED' ? 'Failed' : 'Executed'}>
            <ExactTime at={receiptTimestamp} />
          </Field>
        )}
        {deliveryTime !== null && (
          <Field name="Took">
            {duration(deliveryTime)}
            {usualMs !== null && <span className="muted"> half of this lane’s take {duration(usualMs)}</span>}
          </Field>
        )}
        <HashField
          name="Executor"
          text={message.executor?.address}
          search={laneMessages(message)}
          network={source}
        />
        <HashField
          name="Off-ramp"
          text={message.offramp}
          search={laneMessages(message)}
          network={dest}
          role={`from ${networkName(source)}`}
        />
        <Field name="Lane">
          <Link to="/lane/$source/$dest" params={{ source: source.name, dest: dest.name }}>
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
  const { sourceNetworkInfo: source, destNetworkInfo: dest } = message;
  const names = useNames(tokenAddressesOf([message]));
  const sourceToken = names.token(source, token.sourceTokenAddress);
  const amount = transferredAmount(token, sourceToken);
  return (
    <Fields>
      <AmountField
        name="Amount"
        units={token.amount}
        what="amount in smallest units"
        exact={amount?.exact}
        token={sourceToken}
        about={
          amount ? `${amount.decimals} decimals ${decimalsSources[amount.source]}: ` : '; decimals not known'
        }
      />
      <HashField
        name="Source token"
        text={token.sourceTokenAddress}
        what="token"
        filter="sourceTokenAddress"
        network={source}
        page="token"
      >
        <TokenSymbol token={sourceToken} />
      </HashField>
      <HashField name="Source pool" text={token.sourcePoolAddress} what="pool" network={source} />
      <HashField name="Dest. token" text={token.destTokenAddress} what="token" network={dest} page="token">
        <TokenSymbol token={names.token(dest, token.destTokenAddress)} />
      </HashField>
      {token.destGasAmount !== null && <Field name="Dest. gas">{grouped(token.destGasAmount)}</Field>}
      {token.extraData !== null && (
        <Field name="Extra data">
          <ShortHash text={token.extraData} what="extra data" />
        </Field>
      )}
    </Fields>
  );
}

interface AmountFieldProps {
  readonly name: string;
  /** In the smallest units. */
  readonly units: string;
  readonly what: string;
  /** In units that people use; undefined where the decimals are not known. */
  readonly exact: string | undefined;
  readonly token: NamedToken | undefined;
  /** In front of the smallest units; behind them where the decimals are not known. */
  readonly about?: string;
}

function AmountField({ name, units, what, exact, token, about = '' }: AmountFieldProps) {
  const copy = <CopyButton text={units} what={what} />;
  return (
    <Field name={name}>
      {exact === undefined ? (
        <>
          <strong>{grouped(units)}</strong> <span className="muted">smallest units{about}</span>
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
      )}
    </Field>
  );
}

function ExecutionCard({ message: { extraArgs, destNetworkInfo } }: { readonly message: Message }) {
  return (
    <Card title="Execution">
      <Fields>
        {'gasLimit' in extraArgs ? (
          <Field name="Gas limit">{grouped(extraArgs.gasLimit)}</Field>
        ) : (
          <>
            <Field name="Compute units">{grouped(extraArgs.computeUnits)}</Field>
            <HashField
              name="Token receiver"
              text={printable(extraArgs.tokenReceiver)}
              network={destNetworkInfo}
            />
            <Field name="Writable bitmap">
              <code className="wrap">{printable(extraArgs.accountIsWritableBitmap)}</code>
            </Field>
            <Field name="Accounts">
              {extraArgs.accounts.length === 0 ? <span className="muted">none</span> : null}
              {extraArgs.accounts.map(printable).map((address, index) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: an account may come twice, and their order never changes.
                <SearchableHash key={index} text={address} what="account" network={destNetworkInfo} />
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
      <Fields>
        <AmountField
          name="Total"
          units={totalAmount}
          what="total fee"
          exact={paidAmount(totalAmount, token)?.exact}
          token={token}
        />
        <HashField
          name="Paid in"
          text={tokenAddress}
          what="token"
          search={{
            filters: { sourceChainSelector: source.chainSelector, sourceTokenAddress: tokenAddress },
            words: 'messages that transfer this token',
          }}
          network={source}
          page="token"
        >
          <TokenSymbol token={token} />
        </HashField>
      </Fields>
      {items !== undefined && items.length > 0 && (
        <FeeChart items={items} total={totalAmount} token={token} message={message} names={names} />
      )}
    </Card>
  );
}
