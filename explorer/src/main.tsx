import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './server/api-client.ts';
import { loadWhenIdle, router } from './shell/router.tsx';
// All styles go into one file, in this order: later rules win over earlier ones.
import './style/tokens.css';
import './style/elements.css';
import './shell/shell.css';
import './search/search.css';
import './message/message.css';
import './style/statistics.css';
import './style/print.css';

const root = document.getElementById('root');
if (!root) throw new Error('The page has no place for the app.');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
loadWhenIdle();
