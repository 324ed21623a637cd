/** Why a program that may not migrate cannot use a database. */
import { OperatorError } from '../../base/operator-error.ts';

/** There is no schema, or no database at all. */
export class NotInitialisedError extends OperatorError {
  constructor(message: string) {
    super(
      message,
      'Run `lanescan migrate` to set it up; `lanescan import`, `index`, `mirror` and `serve` do so too, unless autoMigrate is off.',
    );
  }
}

/** The schema is of an earlier release. */
export class OlderSchemaError extends OperatorError {
  constructor(missing: readonly string[]) {
    super(
      `The database has the schema of an earlier release: it lacks ${missing.join(', ')}.`,
      'Make a backup, then run `lanescan migrate` with the role that owns the tables.',
    );
  }
}
