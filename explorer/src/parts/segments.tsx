/** A segmented control: radio buttons side by side. */
import { useId } from 'react';

export function Segments<T extends string>({
  legend,
  options,
  chosen,
  onChoose,
}: {
  /** What is chosen, for screen readers. */
  readonly legend: string;
  readonly options: Readonly<Record<T, string>>;
  readonly chosen: T;
  readonly onChoose: (option: T) => void;
}) {
  const name = useId();
  return (
    <fieldset className="segments">
      <legend className="visually-hidden">{legend}</legend>
      {(Object.entries(options) as [T, string][]).map(([option, label]) => (
        <label key={option}>
          <input type="radio" name={name} checked={chosen === option} onChange={() => onChoose(option)} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  );
}
