// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

struct Log {
    bytes32[] topics;
    bytes data;
}

/// Emits any log and answers any call as it was told: a perfect copy of somebody else at another address.
contract Impostor {
    mapping(bytes4 => bytes) private answers;

    error NoAnswer(bytes4 selector);

    function emitLogs(Log[] calldata logs) external {
        for (uint256 i = 0; i < logs.length; i++) emitLog(logs[i].topics, logs[i].data);
    }

    function setAnswers(bytes4[] calldata selectors, bytes[] calldata given) external {
        for (uint256 i = 0; i < selectors.length; i++) answers[selectors[i]] = given[i];
    }

    fallback() external {
        bytes memory answer = answers[msg.sig];
        if (answer.length == 0) revert NoAnswer(msg.sig);
        assembly {
            return(add(answer, 32), mload(answer))
        }
    }

    function emitLog(bytes32[] memory topics, bytes memory data) private {
        assembly {
            let at := add(data, 32)
            let size := mload(data)
            let topic := add(topics, 32)
            switch mload(topics)
            case 0 { log0(at, size) }
            case 1 { log1(at, size, mload(topic)) }
            case 2 { log2(at, size, mload(topic), mload(add(topic, 32))) }
            case 3 { log3(at, size, mload(topic), mload(add(topic, 32)), mload(add(topic, 64))) }
            default {
                log4(
                    at,
                    size,
                    mload(topic),
                    mload(add(topic, 32)),
                    mload(add(topic, 64)),
                    mload(add(topic, 96))
                )
            }
        }
    }
}
