/** Messages that arrived after the rows were read: counted, and shown when the user asks for them. */
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { LiveChange, MessagePage } from '../../../src/client/api-types.ts';
import { api, searchQuery } from '../server/api-client.ts';
import { useLiveChanges } from '../server/change-stream.ts';
import { apiParameters, filtersOf, type SearchView } from '../server/search-view.ts';

const MAX_COUNTED = 1_000;

const none: ReadonlySet<string> = new Set();

/** `fresh` has the ids of the rows that the latest `show` added. */
export function useNewMessages(view: SearchView, page: MessagePage | undefined) {
  const client = useQueryClient();
  const { queryKey } = searchQuery(view);
  // The count belongs to one search; another search starts at zero.
  const search = JSON.stringify(apiParameters(view));
  const [counted, setCounted] = useState({ search, waiting: none, fresh: none });
  const { waiting, fresh } = counted.search === search ? counted : { waiting: none, fresh: none };

  const show = () => {
    setCounted({ search, waiting: none, fresh: waiting });
    window.scrollTo({ top: 0 });
    void client.refetchQueries({ queryKey, exact: true });
  };
  const onChange = (change: LiveChange) => {
    const { message } = change;
    const rows = client.getQueryData<MessagePage>(queryKey);
    if (!rows) return;
    const shown = rows.data.find(({ messageId }) => messageId === message.messageId);
    if (shown) {
      // A row that is shown is updated in place.
      const isChanged =
        shown.status !== message.status || shown.readyForManualExecution !== message.readyForManualExecution;
      if (isChanged && change.change !== 'removed')
        client.setQueryData<MessagePage>(queryKey, {
          ...rows,
          data: rows.data.map((row) => (row === shown ? message : row)),
        });
      return;
    }
    if (!isNews(change, view, rows)) return;
    // Without rows, nothing can move under the pointer.
    if (rows.data.length === 0) return show();
    setCounted((before) => {
      const known = before.search === search ? before : { search, waiting: none, fresh: none };
      if (known.waiting.size >= MAX_COUNTED || known.waiting.has(message.messageId)) return known;
      return { ...known, waiting: new Set([...known.waiting, message.messageId]) };
    });
  };
  /** Finds messages that arrived between the read of the rows and the start of the stream. */
  const onBegin = async () => {
    const now = await api.search(apiParameters(view)).catch(() => undefined);
    for (const message of now?.data ?? []) onChange({ change: 'created', status: message.status, message });
  };
  const state = useLiveChanges({
    parameters: page && isFollowed(view) ? streamParameters(view) : null,
    onChange,
    onBegin: () => void onBegin(),
  });
  // A refetch for another reason (the server is back) may already have added some of them.
  const shownIds = new Set(page?.data.map(({ messageId }) => messageId));
  const count = [...waiting].filter((messageId) => !shownIds.has(messageId)).length;
  return { count, state, fresh, show };
}

/** Older pages get no new messages, and neither does a time span in the past. */
function isFollowed({ cursor, sentBefore }: SearchView): boolean {
  return cursor === undefined && (sentBefore === undefined || Date.parse(sentBefore) > Date.now());
}

/** Without the filters on a message's state: a row that is shown must be updated when its state changes. */
function streamParameters(view: SearchView): Record<string, string> {
  const { status: _status, readyForManualExecOnly: _ready, ...steady } = filtersOf(view);
  return steady;
}

function isNews({ change, message }: LiveChange, view: SearchView, { data, pagination }: MessagePage) {
  const filtersByState = view.status !== undefined || view.readyForManualExecOnly === 'true';
  if (change === 'removed' || (change === 'updated' && !filtersByState)) return false;
  if (view.status !== undefined && !view.status.split(',').includes(message.status)) return false;
  if (view.readyForManualExecOnly === 'true' && !message.readyForManualExecution) return false;
  // A message older than the last row belongs to a later page.
  const last = data.at(-1);
  return !pagination.hasNextPage || last === undefined || message.sendTimestamp >= last.sendTimestamp;
}
