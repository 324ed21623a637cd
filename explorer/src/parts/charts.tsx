/**
 * Charts in SVG. Each shows its values in words under the pointer, and has a table for screen readers.
 */
import { useState } from 'react';
import { grouped } from '../../../src/text/format.ts';

export interface Bar {
  readonly key: string;
  /** Name of the bar in the table and under the pointer. */
  readonly name: string;
  /** Label under the axis; a bar without one has no label. */
  readonly tick?: string;
  /** From the bottom up. */
  readonly parts: readonly { readonly series: string; readonly tone: string; readonly value: number }[];
}

const HEIGHT = 120;
const STEP = 10;

interface BarChartProps {
  readonly bars: readonly Bar[];
  /** What the chart shows, in a sentence. */
  readonly label: string;
  /** Lines across the bars, by their place between 0 and the number of bars. */
  readonly marks?: readonly { readonly at: number; readonly name: string }[];
  /** A value in words. */
  readonly format?: (value: number) => string;
}

export function BarChart({ bars, label, marks = [], format = grouped }: BarChartProps) {
  const [pointed, setPointed] = useState<number>();
  const totals = bars.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0));
  const highest = Math.max(1, ...totals);
  const series = [
    ...new Map(bars.flatMap(({ parts }) => parts.map((part) => [part.series, part] as const))).values(),
  ];
  const shown = pointed === undefined ? undefined : bars[pointed];
  return (
    <figure className="chart">
      <p className="chart-reading flow" aria-hidden="true">
        {shown && (
          <>
            <strong>{shown.name}</strong> <span>{format(totals[pointed ?? 0] ?? 0)}</span>
          </>
        )}
        {(shown ? shown.parts.filter(({ value }) => value > 0 && shown.parts.length > 1) : series).map(
          (part) => (
            <span key={part.series} className="inline muted">
              <span className="key" style={{ background: `var(--fill-${part.tone})` }} />
              {shown ? `${format(part.value)} ${part.series.toLowerCase()}` : part.series}
            </span>
          ),
        )}
      </p>
      <div className="chart-plot">
        <span className="chart-top muted tiny" aria-hidden="true">
          {format(highest)}
        </span>
        <svg
          viewBox={`0 0 ${bars.length * STEP} ${HEIGHT}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          onPointerMove={({ currentTarget, clientX }) => {
            const { left, width } = currentTarget.getBoundingClientRect();
            setPointed(Math.min(bars.length - 1, Math.floor(((clientX - left) / width) * bars.length)));
          }}
          onPointerLeave={() => setPointed(undefined)}
        >
          {bars.map(({ key, parts }, index) => {
            let top = HEIGHT;
            return (
              <g key={key} opacity={pointed === undefined || pointed === index ? 1 : 0.45}>
                {parts.map(({ series: name, tone, value }) => {
                  // A value above zero must be visible, however small it is.
                  const height = value === 0 ? 0 : Math.max(1.5, (value / highest) * (HEIGHT - 4));
                  top -= height;
                  return (
                    <rect
                      key={name}
                      fill={`var(--fill-${tone})`}
                      x={index * STEP + 1}
                      y={top}
                      width={STEP - 2}
                      height={height}
                    />
                  );
                })}
              </g>
            );
          })}
        </svg>
        {marks.map(({ at, name }, index) => (
          <span
            key={name}
            className="chart-mark muted tiny"
            // One below the other, because marks are often close.
            style={{ left: `${(at / bars.length) * 100}%`, paddingTop: `${index * 14}px` }}
            aria-hidden="true"
          >
            {name}
          </span>
        ))}
      </div>
      <div className="chart-ticks muted tiny" aria-hidden="true">
        {bars.map(
          ({ key, tick }, index) =>
            tick !== undefined && (
              <span key={key} style={index === 0 ? {} : { left: `${((index + 0.5) / bars.length) * 100}%` }}>
                {tick}
              </span>
            ),
        )}
      </div>
      <div className="visually-hidden">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">When</th>
              {series.map(({ series: name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {bars.map(({ key, name, parts }) => (
              <tr key={key}>
                <th scope="row">{name}</th>
                {series.map(({ series: wanted }) => (
                  <td key={wanted}>{format(parts.find((part) => part.series === wanted)?.value ?? 0)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

interface Share {
  readonly key: string | number;
  readonly colour: string;
  readonly value: number;
}

/** One bar, divided by shares. */
export function ShareBar({ parts }: { readonly parts: readonly Share[] }) {
  const total = parts.reduce((sum, { value }) => sum + value, 0);
  return (
    <div className="share-bar" aria-hidden="true">
      {parts
        .filter(({ value }) => value > 0)
        .map(({ key, colour, value }) => (
          <span key={key} style={{ background: colour, flexGrow: Math.max(value, total / 400) }} />
        ))}
    </div>
  );
}
