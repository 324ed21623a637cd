// The compiler leaves everything that is not TypeScript behind; the program needs the migrations beside it.
import { cpSync, rmSync } from 'node:fs';

const target = 'dist/store/schema/migrations';
// Every file in the folder is a migration to apply: one that was deleted must not stay from an earlier build.
rmSync(target, { recursive: true, force: true });
cpSync('src/store/schema/migrations', target, { recursive: true });
