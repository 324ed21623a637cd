/** Every execution of a message: what it came to, and for a failed one the decoded error. */
import type { ReactNode } from 'react';
import type { Attempt, FailureReason } from '../../../src/client/api-types.ts';
import { blockTitle, familyTraits } from '../../../src/domain/chain-families.ts';
import { speakerWords } from '../../../src/domain/failures/speakers.ts';
import type { NetworkInfo } from '../../../src/domain/message.ts';
import { grouped, printable } from '../../../src/text/format.ts';
import { ChainLink } from '../parts/hash.tsx';
import { StatusBadge } from '../parts/icons.tsx';
import { AddressText, ExactTime, ReasonText } from '../parts/text.tsx';
import { Card, Copyable, Fields, hash } from './card.tsx';

interface AttemptsCardProps {
  readonly attempts: readonly Attempt[];
  /** The destination. */
  readonly network: NetworkInfo;
}

export function AttemptsCard({ attempts, network }: AttemptsCardProps) {
  return (
    <Card title={attempts.length === 1 ? 'Execution attempt' : `${attempts.length} execution attempts`} wide>
      <ol className="attempts" reversed>
        {[...attempts].reverse().map((attempt) => (
          <li
            key={`${attempt.blockHash} ${attempt.transactionHash} ${attempt.logIndex}`}
            className={attempt.removedAt === null ? undefined : 'removed'}
          >
            <AttemptView attempt={attempt} network={network} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function AttemptView({ attempt, network }: { readonly attempt: Attempt; readonly network: NetworkInfo }) {
  const { outcome, at, transactionHash, blockNumber, caller, gasUsed, reason, removedAt } = attempt;
  const { transactionError, logs } = attempt;
  return (
    <>
      <p className="attempt-head flow">
        <StatusBadge status={outcome} />
        {at !== null && <ExactTime at={at} />}
      </p>
      {removedAt !== null && (
        <p className="attempt-removed muted">
          A reorganisation removed this attempt: it no longer counts. Noticed <ExactTime at={removedAt} />.
        </p>
      )}
      {reason && (
        <p className="attempt-reason">
          <ReasonText reason={reason} network={network} />
        </p>
      )}
      <Fields
        values={{
          Transaction: hash(transactionHash, 'transaction', network, { page: 'transaction' }) ?? 'not known',
          [blockTitle(network.chainFamily)]:
            blockNumber === null ? null : (
              <>
                {grouped(String(blockNumber))}
                <ChainLink text={String(blockNumber)} what="block" network={network} page="block" />
              </>
            ),
          'Sent by': hash(caller, 'account', network, { filter: 'address' }),
          [familyTraits(network.chainFamily).gasTitle]: gasUsed && grouped(gasUsed),
          ...(reason && errorFields(reason)),
          'Transaction error': transactionError && (
            <code className="wrap">{printable(transactionError)}</code>
          ),
        }}
      />
      {logs !== null && logs.length > 0 && (
        <details className="attempt-logs">
          <summary>The program's log, last {logs.length === 1 ? 'line' : `${logs.length} lines`}</summary>
          <pre>{logs.map(printable).join('\n')}</pre>
        </details>
      )}
    </>
  );
}

function errorFields({ saidBy, error, wrappers, data }: FailureReason): Readonly<Record<string, ReactNode>> {
  const chain = [...wrappers, ...(error ? [error] : [])];
  const errors = (
    <span className="attempt-errors">
      {chain.map((one, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a chain of errors never changes, and names may repeat
        <code key={index} className="wrap">
          <AddressText text={errorText(one)} />
        </code>
      ))}
    </span>
  );
  return {
    'Said by': speakerWords[saidBy],
    Error: chain.length > 0 ? errors : null,
    'Return data': error === null && data !== '0x' ? <Copyable text={data} what="return data" /> : null,
  };
}

function errorText({ name, arguments: given, cut }: NonNullable<FailureReason['error']>): string {
  const list = given.map(({ name: of, value }) => (of === null ? value : `${of}: ${value}`));
  return printable(`${name}(${[...list, ...(cut ? ['…'] : [])].join(', ')})`);
}
