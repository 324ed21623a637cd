/** Processes, of whatever parent, that PostgreSQL runs on database files below a folder. */
import { execFileSync } from 'node:child_process';

export function serverPids(folder: string): number[] {
  const processes = execFileSync('ps', ['-A', '-ww', '-o', 'pid=,args='], { encoding: 'utf8' }).split('\n');
  const servers = processes.filter((line) => line.includes('postgres -D ') && line.includes(folder));
  return servers.map((line) => Number.parseInt(line, 10));
}
