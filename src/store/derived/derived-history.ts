/** Check of positions in the history: 1 to that of the store, each once, and every message has its latest. */
import type { ClientBase } from 'pg';

const LATEST = '(select max(h.position) from history h where h.message_id = m.message_id)';

/** How many faults there are, by kind. */
export async function compareHistory(client: ClientBase) {
  const { rows: messages } = await client.query(
    `select count(*) from message m where position is distinct from ${LATEST}`,
  );
  const { rows: positions } = await client.query(
    `select s.position as stored, h.* from store s, (
       select coalesce(max(position), 0) as highest, count(*) as changes, count(distinct position) as different
       from history) h`,
  );
  const [{ stored, highest, changes, different }] = positions;
  const most = Math.max(Number(stored), Number(highest));
  return {
    /** Messages whose position is not that of their latest change. */
    messages: Number(messages[0].count),
    /** The position of the store is not the highest one. */
    store: stored === highest ? 0 : 1,
    /** Positions that no change has, or several have. */
    gaps: most - Number(different) + Number(changes) - Number(different),
  };
}

/**
 * Gives messages the position of their latest change, inserts a change for those that have none, and sets the position of
 * the store. A change that only the history had is lost: its position stays a gap, which readers skip. Runs in the
 * transaction of the caller, which holds the writers' lock.
 */
export async function repairHistory(client: ClientBase): Promise<number> {
  const missing = await insertMissingChanges(client);
  const { rowCount: moved } = await client.query(
    `update message m set position = ${LATEST} where position <> ${LATEST}`,
  );
  const { rowCount: store } = await client.query(
    `update store set position = highest from (select coalesce(max(position), 0) as highest from history) h
     where position <> highest`,
  );
  await client.query('update publication set assigned_position = position, is_published = true from store');
  return missing + (moved ?? 0) + (store ?? 0);
}

/** Two messages may have one position, of which the history has one change. So the positions are looked up by themselves. */
async function insertMissingChanges(client: ClientBase): Promise<number> {
  const { rows: without } = await client.query(
    `select m.message_id as id, m.position from message m
     where not exists (select 1 from history h where h.message_id = m.message_id)`,
  );
  if (without.length === 0) return 0;
  const { rows: taken } = await client.query('select position from history where position = any($1)', [
    without.map(({ position }) => position),
  ]);
  const positions = new Set(taken.map(({ position }) => position));
  const { rowCount } = await client.query(
    `insert into history (position, message_id, recorded_at, change, status, ready)
     select m.position, m.message_id, now(), 'created', m.status, m.ready from message m where m.message_id = any($1)`,
    [without.filter(({ position }) => !positions.has(position)).map(({ id }) => id)],
  );
  return rowCount ?? 0;
}
