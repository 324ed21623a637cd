// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

struct ReceivedToken {
    address token;
    uint256 amount;
}

struct ReceivedMessage {
    bytes32 messageId;
    uint64 sourceChainSelector;
    bytes sender;
    bytes data;
    ReceivedToken[] destTokenAmounts;
}

/// Takes every message except those it was told to refuse, so that one message can fail while others pass.
contract Receiver {
    /// The safe block, or any number of blocks from one on.
    bytes4 private constant ANY_FINALITY = 0x00010001;

    mapping(bytes32 => bool) public isRefused;
    /// What it reverts with for a message; nothing: Refused.
    mapping(bytes32 => bytes) private refusals;
    mapping(bytes32 => Manner) private manners;
    /// Of a message that it takes: the gas that it leaves over, having used up the rest; 0: it uses what it needs.
    mapping(bytes32 => uint256) private leftovers;
    /// Empty: those that the lane asks for anyway.
    address[] private requiredVerifiers;
    address[] private optionalVerifiers;
    uint8 private optionalThreshold;

    /// How a message is refused: with an error of its own, with given data (also with none), or by using up all gas.
    enum Manner {
        OwnError,
        GivenData,
        AllGas
    }

    event Received(bytes32 indexed messageId);

    error Refused(bytes32 messageId);

    function refuse(bytes32[] calldata messageIds, bool refused) external {
        for (uint256 i = 0; i < messageIds.length; i++) isRefused[messageIds[i]] = refused;
    }

    function refuseWith(bytes32 messageId, Manner manner, bytes calldata data) external {
        isRefused[messageId] = true;
        manners[messageId] = manner;
        refusals[messageId] = data;
    }

    function consume(bytes32 messageId, uint256 leftover) external {
        leftovers[messageId] = leftover;
    }

    function ccipReceive(ReceivedMessage calldata message) external {
        if (isRefused[message.messageId]) refuseNow(message.messageId);
        uint256 leftover = leftovers[message.messageId];
        while (leftover > 0 && gasleft() > leftover) {}
        emit Received(message.messageId);
    }

    function refuseNow(bytes32 messageId) private view {
        Manner manner = manners[messageId];
        if (manner == Manner.OwnError) revert Refused(messageId);
        while (manner == Manner.AllGas) {}
        bytes memory data = refusals[messageId];
        assembly {
            revert(add(data, 32), mload(data))
        }
    }

    function demandVerifiers(address[] calldata required, address[] calldata optional, uint8 threshold) external {
        requiredVerifiers = required;
        optionalVerifiers = optional;
        optionalThreshold = threshold;
    }

    /// Asked by 2.0.
    function getCCVsAndFinalityConfig(uint64, bytes calldata)
        external
        view
        returns (address[] memory, address[] memory, uint8, bytes4)
    {
        return (requiredVerifiers, optionalVerifiers, optionalThreshold, ANY_FINALITY);
    }

    function supportsInterface(bytes4 interfaceId) external pure returns (bool) {
        return
            interfaceId == this.supportsInterface.selector ||
            interfaceId == this.ccipReceive.selector ||
            interfaceId == this.getCCVsAndFinalityConfig.selector;
    }
}
