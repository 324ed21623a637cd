// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

struct TokenAmount {
    address token;
    uint256 amount;
}

struct Message {
    bytes receiver;
    bytes data;
    TokenAmount[] tokenAmounts;
    address feeToken;
    bytes extraArgs;
}

interface IRouter {
    function getFee(uint64 destination, Message memory message) external view returns (uint256);
    function ccipSend(uint64 destination, Message calldata message) external payable returns (bytes32);
}

interface IToken {
    function approve(address spender, uint256 value) external returns (bool);
}

/// A sender that is a contract, with several messages in one transaction. It pays out of its own balances.
contract BatchSender {
    receive() external payable {}

    function send(IRouter router, uint64 destination, Message[] calldata messages) external payable {
        for (uint256 i = 0; i < messages.length; i++) {
            Message calldata message = messages[i];
            for (uint256 t = 0; t < message.tokenAmounts.length; t++) {
                IToken(message.tokenAmounts[t].token).approve(address(router), type(uint256).max);
            }
            uint256 fee = router.getFee(destination, message);
            if (message.feeToken == address(0)) {
                router.ccipSend{value: fee}(destination, message);
            } else {
                IToken(message.feeToken).approve(address(router), type(uint256).max);
                router.ccipSend(destination, message);
            }
        }
    }
}
