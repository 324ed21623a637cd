/** Cards of a message's data, of what was recorded of it, and of the record itself. */
import { useState } from 'react';
import type { MessageHistory } from '../../../src/client/api-types.ts';
import type { Message } from '../../../src/domain/message.ts';
import { counted, exactTime, grouped, printable } from '../../../src/text/format.ts';
import { abiValues, byteLength, textOf } from '../../../src/text/payload.ts';
import { Segments } from '../parts/controls.tsx';
import { CopyButton } from '../parts/copy.tsx';
import { StatusBadge } from '../parts/icons.tsx';
import { AddressText } from '../parts/text.tsx';
import { basePath } from '../server/base-path.ts';
import { Card } from './card.tsx';

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

// ---- Recorded changes, and the raw record

export function ChangesCard({ history: { changes, truncated } }: { readonly history: MessageHistory }) {
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
