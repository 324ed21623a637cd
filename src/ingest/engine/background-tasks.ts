/** Background tasks of a network, one after the other. */
import type { IndexStep } from '../../store/ledger/index-ledger.ts';
import type { BackgroundTasks } from './family.ts';

/** As one step; the steps of the parts have no member in common. */
export function combineTasks(...all: readonly BackgroundTasks[]): BackgroundTasks {
  return {
    get isBehind() {
      return all.some(({ isBehind }) => isBehind);
    },
    async work() {
      const steps: IndexStep[] = [];
      for (const tasks of all) steps.push((await tasks.work()) ?? {});
      const step = Object.assign({}, ...steps) as IndexStep;
      return Object.keys(step).length === 0 ? undefined : step;
    },
  };
}
