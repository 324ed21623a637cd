/** Why a read was refused. Both mean "try again later"; the API answers them with 503. */

/** Load shedding: more reads wait for the database than it can answer in time. */
export class DatabaseBusyError extends Error {}

/** The circuit is open: the database did not answer the last read or the last probe. */
export class DatabaseAwayError extends Error {}
