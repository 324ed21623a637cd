/** Cards of a message's data, of its executions, of what was recorded of it, and of the record itself. */

import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { Attempt, FailureReason } from '../../../src/client/api-types.ts';
import { blockTitle, familyTraits } from '../../../src/domain/chain-families.ts';
import { speakerWords } from '../../../src/domain/failures/speakers.ts';
import type { Message, NetworkInfo } from '../../../src/domain/message.ts';
import { counted, exactTime, grouped, printable } from '../../../src/text/format.ts';
import { abiValues, byteLength, textOf } from '../../../src/text/payload.ts';
import { Segments } from '../parts/controls.tsx';
import { CopyButton } from '../parts/copy.tsx';
import { ChainLink } from '../parts/hash.tsx';
import { StatusBadge } from '../parts/icons.tsx';
import { Card } from '../parts/page.tsx';
import { AddressText, ExactTime, ReasonText } from '../parts/text.tsx';
import { attemptsQuery, basePath, historyQuery } from '../server/api-client.ts';
import { Copyable, Fields, hash } from './fields.tsx';

/** Longer data is shown only on request. */
const SHOWN_CHARACTERS = 2_048;

type DataView = 'decoded' | 'text' | 'hex';

export function DataCard({ data, wide }: { readonly data: string | null; readonly wide: boolean }) {
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
  const views: Partial<Record<DataView, string>> = {
    ...(decoded && { decoded: 'Decoded' }),
    ...(text !== null && { text: 'Text' }),
    hex: 'Hex',
  };
  const view = chosen ?? (decoded ? 'decoded' : text === null ? 'hex' : 'text');
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
      <Segments legend="How to show the data" options={views} chosen={view} onChoose={setChosen} />
      {view === 'decoded' && decoded && (
        <>
          <ol className="abi stack">
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
          <p className="muted small">
            Read as plain ABI. The types are what the words look like; only the receiver knows them.
          </p>
        </>
      )}
      {view === 'text' && text !== null && <LongText text={text.split('\n').map(printable).join('\n')} />}
      {view === 'hex' && <LongText text={data} />}
    </Card>
  );
}

function LongText({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_CHARACTERS;
  return (
    <div className="long-text stack gap-12">
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

// ---- Executions: what each came to, and for a failed one the decoded error

export function AttemptsCard({ message }: { readonly message: Message }) {
  const attempts = useQuery(attemptsQuery(message.messageId)).data?.attempts ?? [];
  if (attempts.length === 0) return null;
  return (
    <Card title={attempts.length === 1 ? 'Execution attempt' : `${attempts.length} execution attempts`} wide>
      <ol className="attempts stack gap-16" reversed>
        {[...attempts].reverse().map((attempt) => (
          <AttemptView
            key={`${attempt.blockHash} ${attempt.transactionHash} ${attempt.logIndex}`}
            attempt={attempt}
            network={message.destNetworkInfo}
          />
        ))}
      </ol>
    </Card>
  );
}

function AttemptView({ attempt, network }: { readonly attempt: Attempt; readonly network: NetworkInfo }) {
  const { outcome, at, transactionHash, blockNumber, caller, gasUsed, reason, removedAt } = attempt;
  const { transactionError, logs } = attempt;
  const block = String(blockNumber);
  return (
    <li className={`stack${removedAt === null ? '' : ' removed'}`}>
      <p className="flow gap-12">
        <StatusBadge status={outcome} />
        {at !== null && <ExactTime at={at} />}
      </p>
      {removedAt !== null && (
        <p className="muted">
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
          [blockTitle(network.chainFamily)]: blockNumber !== null && (
            <>
              {grouped(block)}
              <ChainLink text={block} what="block" network={network} page="block" />
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
          <summary className="muted">
            The program's log, last {logs.length === 1 ? 'line' : `${logs.length} lines`}
          </summary>
          <pre>{logs.map(printable).join('\n')}</pre>
        </details>
      )}
    </li>
  );
}

function errorFields({ saidBy, error, wrappers, data }: FailureReason): Readonly<Record<string, ReactNode>> {
  const chain = [...wrappers, ...(error ? [error] : [])];
  const errors = (
    <span className="stack gap-2">
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

// ---- Recorded changes, and the raw record

export function ChangesCard({ messageId }: { readonly messageId: string }) {
  const { data: history } = useQuery(historyQuery(messageId));
  if (!history) return null;
  const { changes, truncated } = history;
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
          <li key={position} className="flow">
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

export function RawCard({ message }: { readonly message: Message }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="card card-wide" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <h2>Raw record</h2>
        <span className="muted">JSON</span>
      </summary>
      {isOpen && (
        <div className="raw stack gap-12">
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
