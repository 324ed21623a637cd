/** Every execution of a message: what it came to, and for a failed one the decoded error. */
import { blockTitle } from '../../../src/domain/block-noun.ts';
import { grouped, printable } from '../parts/format.ts';
import { SearchableHash } from '../parts/hash.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { ExactTime } from '../parts/time.tsx';
import type { Attempt, FailureReason } from '../server/api-types.ts';
import { Card, Copyable, Field, Fields } from './card.tsx';

interface AttemptsCardProps {
  readonly attempts: readonly Attempt[];
  /** Of the destination. */
  readonly family: string;
}

export function AttemptsCard({ attempts, family }: AttemptsCardProps) {
  return (
    <Card title={attempts.length === 1 ? 'Execution attempt' : `${attempts.length} execution attempts`} wide>
      <ol className="attempts" reversed>
        {[...attempts].reverse().map((attempt) => (
          <li key={`${attempt.transactionHash} ${attempt.logIndex}`}>
            <AttemptView attempt={attempt} family={family} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function AttemptView({ attempt, family }: { readonly attempt: Attempt; readonly family: string }) {
  const { outcome, at, transactionHash, blockNumber, caller, gasUsed, reason } = attempt;
  return (
    <>
      <p className="attempt-head">
        <StatusBadge status={outcome} />
        {at !== null && <ExactTime at={at} />}
      </p>
      {reason && <p className="attempt-reason">{printable(reason.text)}</p>}
      <Fields>
        <Field name="Transaction">
          {transactionHash === null ? (
            'not known'
          ) : (
            <SearchableHash text={transactionHash} what="transaction" />
          )}
        </Field>
        {blockNumber !== null && <Field name={blockTitle(family)}>{grouped(String(blockNumber))}</Field>}
        {caller !== null && (
          <Field name="Sent by">
            <Copyable text={caller} what="address" />
          </Field>
        )}
        {gasUsed !== null && <Field name="Gas used">{grouped(gasUsed)}</Field>}
        {reason && <ErrorFields reason={reason} />}
      </Fields>
    </>
  );
}

function ErrorFields({ reason: { error, wrappers, data } }: { readonly reason: FailureReason }) {
  const chain = [...wrappers, ...(error ? [error] : [])];
  return (
    <>
      {chain.length > 0 && (
        <Field name="Error">
          <span className="attempt-errors">
            {chain.map((one, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a chain of errors never changes, and names may repeat
              <code key={index} className="wrap">
                {errorText(one)}
              </code>
            ))}
          </span>
        </Field>
      )}
      {error === null && data !== '0x' && (
        <Field name="Return data">
          <Copyable text={data} what="return data" />
        </Field>
      )}
    </>
  );
}

function errorText({ name, arguments: given, cut }: NonNullable<FailureReason['error']>): string {
  const list = given.map(({ name: of, value }) => (of === null ? value : `${of}: ${value}`));
  return printable(`${name}(${[...list, ...(cut ? ['…'] : [])].join(', ')})`);
}
