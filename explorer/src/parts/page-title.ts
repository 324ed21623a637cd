import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { readinessQuery } from '../server/api-client.ts';

/** The title of the page in its tab; it also says whether the data is simulated. */
export function useTitle(title: string): void {
  const { data } = useQuery(readinessQuery);
  const isSimulated = data?.simulated ?? false;
  useEffect(() => {
    document.title = `${title} · Lanescan${isSimulated ? ' (simulated data)' : ''}`;
  }, [title, isSimulated]);
}
