// Removes what the build makes. A package must not carry files whose source has been renamed or removed since.
import { rmSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
