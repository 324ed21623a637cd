import { answerOrders } from '../child.ts';
import { type LoadOrder, type LoadReport, runLoad } from './client.ts';

answerOrders<LoadOrder, LoadReport>(runLoad);
